package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.share.Blocks.Block;
import dev.tutti.spi.Printable;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Device memory of equal size on each rank that all ranks can address. It is initially all zero.
 * Ranks in the same process map each other's memory directly; the others receive a handle or a
 * descriptor.
 */
public final class PeerMemory implements AutoCloseable {
  /*
   * Every rank allocates its own memory and announces its size and handle, or its failure; then it
   * maps the memory of the others, and reports whether that succeeded. So all ranks reach the same
   * outcome, and what is needed only for mapping can be released. If all ranks have fabric handles
   * but one of them cannot map by these, all repeat the mapping with descriptors. c10d's barrier
   * before the descriptors are closed is part of the second exchange.
   */
  /** The prefix of a problem that another rank caused. */
  private static final String FOLLOWS = "in consequence, ";

  private static final System.Logger LOG = System.getLogger(PeerMemory.class.getName());

  private final DeviceContext context;
  private final List<Block> blocks;
  private final List<Block> closing;
  private final long[] views;
  private final long usedNumbers;
  private boolean closed;

  private PeerMemory(PeerWorld world, List<Block> blocks, long[] views, long usedNumbers) {
    this.context = world.context();
    this.blocks = blocks;
    this.closing = closing(world, blocks);
    this.views = views;
    this.usedNumbers = usedNumbers;
  }

  /**
   * Allocates the memory; all ranks must call this together.
   *
   * @param world describes the ranks
   * @param byteSize the number of bytes on each rank, the same on all ranks
   * @param numbers the bits that this rank uses, see {@link #usedNumbers}
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if any of them is out of memory or cannot map
   * @throws TuttiException if sizes differ, or a rank does not arrive in time
   */
  public static PeerMemory allocate(
      PeerWorld world, long byteSize, long numbers, long deadlineNanos) {
    world.context().enter();
    Blocks blocks = blocks(world);
    List<Block> mapped = new ArrayList<>();
    Block own = null;
    String problem = "";
    byte[] offer = {};
    try {
      own = create(world, blocks, byteSize, deadlineNanos);
      offer = Offer.of(byteSize, own.handle());
    } catch (TuttiException | IllegalArgumentException e) {
      problem = text(world, e);
      offer = Offer.refusal(byteSize, problem);
    }
    int rank = world.exchange().rank();
    try {
      List<byte[]> offers = world.exchange().allGather(offer, deadlineNanos);
      List<Offer> all = offers.stream().map(Offer::decode).toList();
      requireEqualSizes(world, all);
      requireNoProblem(world, byteSize, all.stream().map(Offer::problem).toList());
      if (own == null) {
        throw new AssertionError("own memory is missing");
      }
      boolean fabric = blocks.areFabric(all.stream().map(Offer::handle).toList());
      Request request = new Request(world, blocks, all, own, numbers, deadlineNanos);
      List<Result> results = map(request, fabric, mapped);
      if (fabric && results.stream().anyMatch(result -> !result.problem().isEmpty())) {
        LOG.log(Level.DEBUG, "rank {0}: cannot map memory by fabric handles: {1}", rank, results);
        drop(world, mapped);
        results = map(request, false, mapped);
      }
      requireNoProblem(world, byteSize, results.stream().map(Result::problem).toList());
      own.settle();
      PeerMemory memory =
          new PeerMemory(
              world,
              List.copyOf(mapped),
              results.stream().mapToLong(Result::view).toArray(),
              results.stream().mapToLong(Result::numbers).reduce(0, (a, b) -> a | b));
      mapped.clear();
      own = null;
      return memory;
    } finally {
      drop(world, mapped);
      if (own != null) {
        own.settle();
        own.free();
      }
    }
  }

  /** Returns an implementation for the way in which a world shares memory. */
  private static Blocks blocks(PeerWorld world) {
    return switch (world.sharing()) {
      case VMM -> new MappedBlocks(world, MappedBlocks.hasFabric(world));
      case FD -> new MappedBlocks(world, false);
      case IPC -> new OpenedBlocks(world);
    };
  }

  /** Allocates this rank's memory; if the device is full, makes room and retries. */
  private static Block create(PeerWorld world, Blocks blocks, long byteSize, long deadlineNanos) {
    try {
      return blocks.create(byteSize, deadlineNanos);
    } catch (CudaException e) {
      if (!e.isOutOfMemory()) {
        throw e;
      }
      world.pressure().onPressure(byteSize);
      world.context().enter();
      return blocks.create(byteSize, deadlineNanos);
    }
  }

  /** The state of a rank once all ranks have allocated their memory. */
  private record Request(
      PeerWorld world,
      Blocks blocks,
      List<Offer> all,
      Block own,
      long numbers,
      long deadlineNanos) {}

  /**
   * Maps the memory of all ranks, and receives how that went on the others.
   *
   * @param fabric whether to map by the fabric handles that all ranks have, rather than by
   *     descriptors where there are any
   * @param mapped receives the blocks that could be mapped
   * @throws RendezvousException if a rank or the group is gone: there is then no rank to report to
   */
  private static List<Result> map(Request request, boolean fabric, List<Block> mapped) {
    StoreExchange exchange = request.world.exchange();
    int rank = exchange.rank();
    int[] fds = {};
    try {
      String problem = "";
      try {
        fds =
            fabric
                ? Blocks.noDescriptors(request.world)
                : request.blocks.pass(request.own, request.deadlineNanos);
        for (int r = 0; r < fds.length; r++) {
          Offer offer = request.all.get(r);
          mapped.add(
              r == rank
                  ? request.own
                  : request.blocks.map(r, offer.handle, fds[r], offer.byteSize));
        }
      } catch (RendezvousException e) {
        throw e;
      } catch (MissingDescriptorException e) {
        problem = FOLLOWS + text(request.world, e);
      } catch (TuttiException e) {
        problem = text(request.world, e);
      } finally {
        for (int r = 0; r < fds.length; r++) {
          if (r != rank) {
            closeFd(fds[r]);
          }
        }
      }
      byte[] result = Result.encode(request.numbers, mapped, problem);
      return exchange.allGather(result, request.deadlineNanos).stream()
          .map(bytes -> Result.decode(bytes, rank))
          .toList();
    } finally {
      closeFd(rank < fds.length ? fds[rank] : -1);
    }
  }

  private static void closeFd(int fd) {
    if (fd >= 0) {
      IpcChannel.closeFd(fd);
    }
  }

  /** Unmaps the memory of other ranks from this rank's addresses. */
  private static void drop(PeerWorld world, List<Block> mapped) {
    world.context().enter();
    for (int r = 0; r < mapped.size(); r++) {
      if (r != world.exchange().rank()) {
        mapped.get(r).free();
      }
    }
    mapped.clear();
  }

  /**
   * Returns the blocks in the order of closing: those of other processes first, because their
   * owners wait for that.
   */
  private static List<Block> closing(PeerWorld world, List<Block> blocks) {
    List<Block> first = new ArrayList<>();
    List<Block> last = new ArrayList<>();
    for (int r = 0; r < blocks.size(); r++) {
      (world.isSameProcess(r) ? last : first).add(blocks.get(r));
    }
    first.addAll(last);
    return first;
  }

  private static String text(PeerWorld world, RuntimeException e) {
    return "rank " + world.exchange().rank() + ": " + e.getMessage();
  }

  private static void requireEqualSizes(PeerWorld world, List<Offer> all) {
    for (int r = 1; r < all.size(); r++) {
      if (all.get(r).byteSize() != all.get(0).byteSize()) {
        throw new TuttiException(
            "rank %s: rank %s allocates %s bytes, but rank 0 %s"
                .formatted(
                    world.exchange().rank(), r, all.get(r).byteSize(), all.get(0).byteSize()));
      }
    }
  }

  private static void requireNoProblem(PeerWorld world, long byteSize, List<String> problems) {
    List<String> all = problems.stream().filter(problem -> !problem.isEmpty()).toList();
    if (all.isEmpty()) {
      return;
    }
    String cause =
        all.stream().filter(problem -> !problem.startsWith(FOLLOWS)).findFirst().orElse(all.get(0));
    throw new BackendException(
        "rank %s: cannot share memory of %s bytes on each rank: %s"
            .formatted(world.exchange().rank(), byteSize, cause));
  }

  /** What a rank announces about its memory. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Offer(long byteSize, String problem, byte[] handle) {
    static byte[] of(long byteSize, byte[] handle) {
      return ByteBuffer.allocate(9 + handle.length)
          .putLong(byteSize)
          .put((byte) 1)
          .put(handle)
          .array();
    }

    static byte[] refusal(long byteSize, String problem) {
      byte[] text = problem.getBytes(StandardCharsets.UTF_8);
      return ByteBuffer.allocate(9 + text.length).putLong(byteSize).put((byte) 0).put(text).array();
    }

    static Offer decode(byte[] bytes) {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      long byteSize = buffer.getLong();
      boolean made = buffer.get() == 1;
      byte[] rest = new byte[buffer.remaining()];
      buffer.get(rest);
      return made
          ? new Offer(byteSize, "", rest)
          : new Offer(byteSize, Printable.decode(rest), new byte[0]);
    }
  }

  /**
   * What a rank reports at the end.
   *
   * @param numbers the numbers that it uses
   * @param view the address at which it addresses the reader's memory
   * @param problem the problem, or an empty string
   */
  private record Result(long numbers, long view, String problem) {
    static byte[] encode(long numbers, List<Block> mapped, String problem) {
      byte[] text = problem.getBytes(StandardCharsets.UTF_8);
      ByteBuffer buffer = ByteBuffer.allocate(12 + 8 * mapped.size() + text.length);
      buffer.putLong(numbers).putInt(mapped.size());
      mapped.forEach(block -> buffer.putLong(block.address()));
      return buffer.put(text).array();
    }

    static Result decode(byte[] bytes, int reader) {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      long numbers = buffer.getLong();
      int count = buffer.getInt();
      long view = reader < count ? buffer.getLong(12 + 8 * reader) : 0;
      buffer.position(12 + 8 * count);
      return new Result(
          numbers, view, Printable.line(StandardCharsets.UTF_8.decode(buffer).toString()));
    }
  }

  /**
   * Returns the address at which a rank addresses this rank's memory.
   *
   * @param rank the addressing rank
   */
  public long view(int rank) {
    return views[rank];
  }

  /**
   * Returns the bits that were in use on any rank when this memory was allocated, so that all ranks
   * can choose the same one.
   */
  public long usedNumbers() {
    return usedNumbers;
  }

  /**
   * Returns the address at which a rank's memory begins, for this rank's device.
   *
   * @param rank the rank that owns the memory
   */
  public long address(int rank) {
    return blocks.get(rank).address();
  }

  /**
   * Unmaps all of the memory from this rank's addresses, and frees this rank's own; only the first
   * call has an effect. If other processes must close it first, this waits for them for up to 5 s,
   * and then leaves the memory allocated until the process ends.
   */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      context.enter();
      closing.forEach(Block::leave);
    }
  }

  /**
   * Closes the memory, but keeps all addresses that ranks have for it from any other use, because
   * graphs contain them. Memory that is shared by legacy handles stays allocated.
   *
   * @return frees what is left
   */
  public Runnable retire() {
    closed = true;
    context.enter();
    List<Runnable> left = closing.stream().map(Block::retire).toList();
    return () -> {
      context.enter();
      left.forEach(Runnable::run);
    };
  }
}
