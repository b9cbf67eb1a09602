package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.DeviceContext;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Device memory of equal size of each rank, that all ranks address. All zero at first. Ranks of one
 * process map each other's memory directly, others get a handle or a descriptor.
 */
public final class PeerMemory implements AutoCloseable {
  /*
   * Every rank makes its own and tells its size and what others find it by, or what went wrong; maps
   * that of the others; and tells again whether that went well. So all come to the same end, and
   * what is only needed to map can go. Where all have fabric handles and one cannot map by them, they
   * do that part again by descriptors. c10d's barrier before the descriptors are closed is part of
   * the second exchange.
   */
  /** Begins a problem that another rank's has brought about. */
  private static final String FOLLOWS = "in consequence, ";

  private static final System.Logger LOG = System.getLogger(PeerMemory.class.getName());

  private final DeviceContext context;
  private final List<Block> blocks;
  private final List<Block> closing;
  private final long[] views;
  private final long usedNumbers;
  private boolean closed;

  /** One rank's memory as this rank addresses it. */
  interface Block {
    long address();

    /** Returns what peers find it by. */
    default byte[] handle() {
      throw new UnsupportedOperationException();
    }

    /** Gives up what is only needed until all have mapped it. */
    default void settle() {}

    /** Takes it out of this rank's addresses. */
    void free();

    /** Does so where all ranks have mapped it, and may still use it. */
    default void leave() {
      free();
    }
  }

  private PeerMemory(PeerWorld world, List<Block> blocks, long[] views, long usedNumbers) {
    this.context = world.context();
    this.blocks = blocks;
    this.closing = closing(world, blocks);
    this.views = views;
    this.usedNumbers = usedNumbers;
  }

  /**
   * Allocates; all ranks call it at once.
   *
   * @param world who the ranks are
   * @param byteSize bytes of each rank, the same on all
   * @param numbers bits that this rank uses, see {@link #usedNumbers}
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if one of them has no room or cannot map
   * @throws TuttiException if sizes differ, or a rank does not come in time
   */
  public static PeerMemory allocate(
      PeerWorld world, long byteSize, long numbers, long deadlineNanos) {
    world.context().enter();
    Blocks blocks = Blocks.of(world);
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
        LOG.log(Level.DEBUG, "rank {0}: no memory by fabric handles: {1}", rank, results);
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

  /** Makes this rank's memory; where the device is full, again after room was made. */
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

  /** What a rank has when all have made their memory. */
  private record Request(
      PeerWorld world,
      Blocks blocks,
      List<Offer> all,
      Block own,
      long numbers,
      long deadlineNanos) {}

  /**
   * Maps the memory of all ranks, and hears how that went on the others.
   *
   * @param fabric by the handles that all have, else by descriptors where there are some
   * @param mapped gets the blocks, as far as they can be mapped
   * @throws RendezvousException if a rank is gone, or the group is: there is nobody to tell
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
                ? none(exchange.size())
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

  private static int[] none(int size) {
    int[] none = new int[size];
    Arrays.fill(none, -1);
    return none;
  }

  private static void closeFd(int fd) {
    if (fd >= 0) {
      IpcChannel.closeFd(fd);
    }
  }

  /** Takes what others made out of this rank's addresses. */
  private static void drop(PeerWorld world, List<Block> mapped) {
    world.context().enter();
    for (int r = 0; r < mapped.size(); r++) {
      if (r != world.exchange().rank()) {
        mapped.get(r).free();
      }
    }
    mapped.clear();
  }

  /** Returns the blocks of other processes first, as those wait for it. */
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
            "rank "
                + world.exchange().rank()
                + ": rank "
                + r
                + " allocates "
                + all.get(r).byteSize()
                + " bytes, but rank 0 "
                + all.get(0).byteSize());
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
        "rank "
            + world.exchange().rank()
            + ": no shared memory of "
            + byteSize
            + " bytes for each rank: "
            + cause);
  }

  /** What a rank tells of its memory. */
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
          : new Offer(byteSize, new String(rest, StandardCharsets.UTF_8), new byte[0]);
    }
  }

  /**
   * What a rank tells in the end.
   *
   * @param numbers that it uses
   * @param view where it addresses the reader's memory
   * @param problem or an empty text
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
      return new Result(numbers, view, StandardCharsets.UTF_8.decode(buffer).toString());
    }
  }

  /**
   * Returns where a rank addresses the memory of this one.
   *
   * @param rank who addresses it
   */
  public long view(int rank) {
    return views[rank];
  }

  /** Returns the bits that any rank used when all allocated this, so all can choose the same. */
  public long usedNumbers() {
    return usedNumbers;
  }

  /**
   * Returns where a rank's memory begins, for this rank's device.
   *
   * @param rank whose
   */
  public long address(int rank) {
    return blocks.get(rank).address();
  }

  /**
   * Takes all of it out of this rank's addresses, and frees its own; once. Where other processes
   * have to close it before, it waits for them up to 5 s, and then leaves it to the end of the
   * process.
   */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      context.enter();
      closing.forEach(Block::leave);
    }
  }
}
