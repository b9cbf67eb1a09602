package dev.tutti.cuda;

import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclResult;
import dev.tutti.cuda.nccl.NcclTypes;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.gloo.BindAddress;
import dev.tutti.spi.BackendContext;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Brings the ranks of a group together in a communicator of NCCL. */
final class NcclWorld {
  /*
   * The key of the communicator's id is c10d's for the first communicator of a group on a kind of
   * device, and so is its value. A rank of Tutti says that it is here before it enters the
   * communicator; as nobody leaves the making of that before all ranks have entered, whoever comes out
   * of it sees the keys of all ranks of Tutti, and knows whether all ranks are such.
   *
   * NCCL connects ranks when they first need it, and a call then waits for the peers. Where all ranks
   * are of Tutti the usual connections are made at once, so that calls return at once;
   * and calls block then, as those that do not take several times as long, if each rank has a process of
   * its own.
   *
   * A rank that cannot be set up ends that of the others by closing their stores. NCCL does not hear of
   * it, so who waits for NCCL looks at its store now and then.
   */
  private static final String ID_KEY = "0";
  private static final String HERE = "tutti/here/";
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  private final BackendContext context;
  private final NcclCalls nccl;
  private final CudaDevice device;
  private final long until;

  /** Is where the first calls run, and what they work on, until they are done. */
  private @Nullable CudaStream connecting;

  private @Nullable DeviceBlock cells;

  private NcclWorld(BackendContext context, NcclCalls nccl, CudaDevice device) {
    this.context = context;
    this.nccl = nccl;
    this.device = device;
    this.until = System.nanoTime() + context.timeout().toNanos();
  }

  /**
   * Meets the other ranks.
   *
   * @param missing what the group has to do without, with the reason
   * @throws RendezvousException if they do not come, with those that are missing
   * @throws dev.tutti.cuda.nccl.NcclException if NCCL fails
   */
  static NcclBackend join(
      BackendContext context, Cuda cuda, NcclCalls nccl, Map<Feature, String> missing) {
    CudaDevice device = cuda.device(context.device().index());
    return new NcclWorld(context, nccl, device).join(missing);
  }

  private NcclBackend join(Map<Feature, String> missing) {
    int rank = context.rank();
    int size = context.size();
    Store store = context.store();
    store.set(HERE + rank, nccl.process());
    device.context().enter();
    Communicator communicator;
    try {
      byte[] id = exchangeId(store);
      communicator =
          Communicator.create(nccl, device.context()::enter, id, size, rank, until, this::look);
    } catch (RendezvousException e) {
      throw new RendezvousException(e.getMessage() + missing(store), e);
    }
    NcclLane lane = new NcclLane(device, communicator);
    NcclMessages messages = null;
    boolean good = false;
    try {
      if (size > 1 && store.check(keys())) {
        boolean blocks = haveProcessesOfTheirOwn();
        if (blocks) {
          communicator.block(rank, 0, until, this::look);
        }
        connect(communicator);
        messages = messages(blocks);
      }
      NcclBackend backend =
          new NcclBackend(device, rank, size, communicator, lane, store, messages, missing);
      good = true;
      return backend;
    } finally {
      if (!good) {
        if (messages != null) {
          messages.beginClose();
        }
        communicator.abort(new IllegalStateException("the group was not made"));
        communicator.close();
        connected();
      }
    }
  }

  /**
   * Tells, on all ranks alike, whether no two of them share a process: of those that do NCCL frees
   * the last one's with those of all others, which does not go with communicators that share what
   * they have.
   */
  private boolean haveProcessesOfTheirOwn() {
    Set<String> processes = new HashSet<>();
    for (byte[] process : context.store().multiGet(keys(), left())) {
      processes.add(new String(process, StandardCharsets.UTF_8));
    }
    return processes.size() == context.size();
  }

  /** Opens links between the ranks, on which messages find their receivers. */
  private NcclMessages messages(boolean blocks) {
    StoreExchange exchange =
        new StoreExchange(context.store(), "tutti/links", context.rank(), context.size());
    RankLinks links =
        RankLinks.open(() -> BindAddress.choose(context.settings()).address(), exchange, until);
    boolean good = false;
    try {
      NcclMessages made =
          new NcclMessages(
              device,
              nccl,
              context.store(),
              links,
              context.rank(),
              context.size(),
              blocks,
              context.onFailure());
      good = true;
      return made;
    } finally {
      if (!good) {
        links.close();
      }
    }
  }

  private byte[] exchangeId(Store store) {
    if (context.rank() == 0) {
      byte[] id = nccl.uniqueId();
      store.set(ID_KEY, id);
      return id;
    }
    byte[] id;
    try {
      id = store.get(ID_KEY, left());
    } catch (StoreTimeoutException e) {
      throw new RendezvousException(
          "rank "
              + context.rank()
              + "/"
              + context.size()
              + ": rank 0 did not offer a communicator of NCCL in time",
          e);
    }
    if (id.length != NcclCalls.UNIQUE_ID_BYTES) {
      throw new RendezvousException(
          "rank "
              + context.rank()
              + ": the id of NCCL's communicator has "
              + id.length
              + " bytes, not "
              + NcclCalls.UNIQUE_ID_BYTES
              + "; is rank 0's backend another one?");
    }
    return id;
  }

  private Duration left() {
    return Duration.ofNanos(Math.max(0, until - System.nanoTime()));
  }

  /** Throws once the store is closed. */
  private void look() {
    boolean _ = context.store().check(List.of(ID_KEY));
  }

  private List<String> keys() {
    List<String> keys = new ArrayList<>(context.size());
    for (int r = 0; r < context.size(); r++) {
      keys.add(HERE + r);
    }
    return keys;
  }

  private String missing(Store store) {
    List<Integer> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < context.size(); r++) {
        if (!store.check(List.of(HERE + r))) {
          ranks.add(r);
        }
      }
    } catch (StoreException e) {
      return ""; // The failure that this would add to is what matters.
    }
    return ranks.isEmpty() ? "" : "; of ranks " + ranks + " none came that is a rank of Tutti";
  }

  /** Makes the connections of the usual algorithms. */
  private void connect(Communicator communicator) {
    device.context().enter();
    CudaStream stream = device.reserve().take();
    connecting = stream;
    DeviceBlock own =
        device.allocator().allocate((long) Integer.BYTES * 2 * context.size(), stream.forBlocks());
    cells = own;
    long from = own.address();
    int type = NcclTypes.type(DType.INT32);
    int sum = NcclTypes.op(ReduceOp.Kind.SUM, DType.INT32);
    long queue = stream.handle();
    communicator.runGroup(
        "the first all-reduce",
        until,
        this::look,
        (calls, handle) -> calls.allReduce(from, from, 1, type, sum, handle, queue));
    communicator.runGroup(
        "the first broadcast",
        until,
        this::look,
        (calls, handle) -> calls.broadcast(from, from, Integer.BYTES, 0, handle, queue));
    communicator.runGroup(
        "the first exchange",
        until,
        this::look,
        (calls, handle) -> {
          int first = NcclResult.SUCCESS;
          for (int r = 0; r < context.size(); r++) {
            long cell = from + (long) Integer.BYTES * r;
            long to = from + (long) Integer.BYTES * (context.size() + r);
            int sent = calls.send(cell, Integer.BYTES, r, handle, queue);
            int received = calls.receive(to, Integer.BYTES, r, handle, queue);
            first = first != 0 ? first : sent != 0 ? sent : received;
          }
          return first;
        });
    await(stream);
    connected();
  }

  /** Gives back what the first calls used: they are done, or their communicator is gone. */
  private void connected() {
    if (cells != null) {
      device.allocator().free(cells);
      cells = null;
    }
    if (connecting != null) {
      device.reserve().give(connecting);
      connecting = null;
    }
  }

  private void await(CudaStream stream) {
    try (CudaEvent event = stream.record()) {
      for (long now = System.nanoTime();
          !event.awaitReached(now + Math.min(LOOK_NANOS, until - now));
          now = System.nanoTime()) {
        if (now - until >= 0) {
          throw new RendezvousException(
              "rank " + context.rank() + ": the ranks did not all make the first calls in time");
        }
        look();
      }
    }
  }
}
