package dev.tutti.cuda.nccl;

import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.PeerNotes;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.spi.BackendContext;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The rendezvous of a group's ranks in an NCCL communicator. */
public final class NcclWorld {
  /*
   * The communicator's id has the key and value format that c10d uses for the first communicator of
   * a group on a kind of device. NcclRoster finds out whether all ranks run Tutti.
   *
   * NCCL connects ranks when they first need it, and a call then waits for the peers. If all ranks
   * run Tutti, the usual connections are made at once, so that later calls return at once. Calls
   * then block, provided each rank has a process of its own, because nonblocking calls take several
   * times as long.
   *
   * PyTorch creates its communicator at init if it was given a device, otherwise when an operation
   * first needs it; its ranks may then need others first, for messages. A setting makes Tutti do
   * the same, and then nothing waits here.
   *
   * A rank that cannot be set up ends the setup of the others by closing their stores. NCCL does
   * not notice that, so a thread that waits for NCCL checks its store from time to time.
   */
  private static final String ID_KEY = "0";
  private static final String OWN_KEY = "tutti/own";
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  private final BackendContext context;
  private final NcclCalls nccl;
  private final CudaDevice device;
  private final NcclRoster processes;
  private final Map<Feature, String> missing;
  private final String name;
  private final long until;

  /** The stream and memory of the first calls, until those are done. */
  private @Nullable CudaStream connecting;

  private @Nullable DeviceBlock cells;

  private NcclWorld(
      BackendContext context, NcclCalls nccl, CudaDevice device, Map<Feature, String> missing) {
    this.context = context;
    this.nccl = nccl;
    this.device = device;
    this.processes = new NcclRoster(context);
    this.missing = missing;
    this.name = "rank " + context.rank() + "/" + context.size();
    this.until = System.nanoTime() + context.timeout().toNanos();
  }

  /**
   * Meets the other ranks, whether they run Tutti or PyTorch.
   *
   * @throws RendezvousException if ranks do not arrive; the message names the missing ones
   * @throws dev.tutti.cuda.nccl.NcclException if NCCL fails
   */
  public static NcclBackend join(BackendContext context, Cuda cuda, NcclCalls nccl) {
    CudaDevice device = cuda.device(context.device().index());
    NcclWorld world = new NcclWorld(context, nccl, device, Map.of());
    boolean lazy = context.settings().get(CudaSettings.NCCL_LAZY);
    world.processes.arrive(nccl.process(), lazy);
    return lazy ? world.later() : world.meet(false);
  }

  /**
   * Meets the other ranks; all must run Tutti.
   *
   * @param missing the features that the group lacks, with the reasons
   * @throws RendezvousException if ranks do not arrive; the message names the missing ones
   * @throws dev.tutti.cuda.nccl.NcclException if NCCL fails
   */
  public static NcclBackend joinAlone(
      BackendContext context, Cuda cuda, NcclCalls nccl, Map<Feature, String> missing) {
    CudaDevice device = cuda.device(context.device().index());
    NcclWorld world = new NcclWorld(context, nccl, device, missing);
    world.processes.arrive(nccl.process(), false);
    return world.meet(true);
  }

  private NcclBackend meet(boolean alone) {
    Parts.of(device).context().enter();
    boolean shares;
    Communicator communicator;
    try {
      byte[] id = exchangeId(ID_KEY);
      shares = alone || processes.expectAlone(left());
      communicator = create(id, shares);
    } catch (RendezvousException e) {
      throw new RendezvousException(e.getMessage() + processes.missing(), e);
    }
    return open(communicator, shares);
  }

  private Communicator create(byte[] id, boolean shares) {
    return Communicator.create(
        nccl,
        Parts.of(device).context(),
        id,
        context.size(),
        context.rank(),
        shares,
        until,
        this::look);
  }

  /** Creates the backend of a subgroup of a group with PyTorch ranks. */
  private NcclBackend meetBySplit(NcclSubgroups.Split part) {
    return open(part.split(name, context.rank(), until, this::look), true);
  }

  /** Creates the backend on a communicator that all ranks have entered. */
  private NcclBackend open(Communicator first, boolean shares) {
    Communicator communicator = first;
    RankNotes deaths = null;
    boolean good = false;
    try {
      boolean alone = context.size() == 1 || processes.isAlone();
      boolean blocks = alone && context.size() > 1 && processes.haveProcessesOfTheirOwn(left());
      if (blocks && !shares) {
        // Some ranks arrived too late for the guess.
        communicator = create(exchangeId(OWN_KEY), true);
        first.close(until);
      }
      if (blocks) {
        communicator.block(context.rank(), until, this::look);
      }
      LazyCommunicator lazy = new LazyCommunicator(communicator);
      NcclLauncher launcher = new NcclLauncher(device, lazy);
      OrderedMessages messages = null;
      NcclSubgroups subgroups = null;
      if (alone && context.size() > 1) {
        connect(communicator);
        deaths = PeerNotes.connect(context, until);
      } else if (!alone) {
        subgroups = new NcclSubgroups(context, communicator, launcher, this::partOf);
      }
      if (context.size() > 1) {
        messages = new OrderedMessages(context, device, launcher, !alone, null);
      }
      NcclBackend backend = backend(lazy, launcher, messages, deaths, subgroups);
      good = true;
      return backend;
    } finally {
      if (!good) {
        if (deaths != null) {
          deaths.abort(new IllegalStateException("the group was not created"));
          deaths.close();
        }
        for (Communicator each : new HashSet<>(List.of(first, communicator))) {
          each.abort(new IllegalStateException("the group was not created"));
          each.close();
        }
        connected();
      }
    }
  }

  private NcclBackend partOf(BackendContext part, NcclSubgroups.Split maker) {
    NcclWorld world = new NcclWorld(part, nccl, device, missing);
    world.processes.arrive(nccl.process(), false);
    return world.meetBySplit(maker);
  }

  /** Creates the backend of a group whose ranks meet in their first operation. */
  private NcclBackend later() {
    NcclLink.Place place = new NcclLink.Place(name, context.rank(), context.size());
    LazyCommunicator lazy =
        new LazyCommunicator(new NcclLink(nccl, device, context.store(), ID_KEY, place));
    NcclLauncher launcher = new NcclLauncher(device, lazy);
    if (context.size() == 1) {
      return backend(lazy, launcher, null, null, null);
    }
    PairMessages pairs = new PairMessages(context, device, nccl);
    OrderedMessages messages = new OrderedMessages(context, device, launcher, true, pairs);
    return backend(lazy, launcher, messages, null, null);
  }

  private NcclBackend backend(
      LazyCommunicator lazy,
      NcclLauncher launcher,
      @Nullable OrderedMessages messages,
      @Nullable RankNotes deaths,
      @Nullable NcclSubgroups subgroups) {
    return new NcclBackend(context, device, lazy, launcher, messages, deaths, subgroups, missing);
  }

  private byte[] exchangeId(String key) {
    Store store = context.store();
    if (context.rank() == 0) {
      byte[] id = nccl.uniqueId();
      store.set(key, id);
      return id;
    }
    byte[] id;
    try {
      id = store.get(key, left());
    } catch (StoreTimeoutException e) {
      throw new RendezvousException(
          name + ": rank 0 did not offer an NCCL communicator in time", e);
    }
    return NcclLink.checked(name, id);
  }

  private Duration left() {
    return Duration.ofNanos(Math.max(0, until - System.nanoTime()));
  }

  /** Throws once the store is closed. */
  private void look() {
    boolean _ = context.store().check(List.of(ID_KEY));
  }

  /** Makes the connections that the usual algorithms need. */
  private void connect(Communicator communicator) {
    Parts.of(device).context().enter();
    CudaStream stream = Parts.of(device).takeStream();
    connecting = stream;
    DeviceBlock own =
        Parts.of(device)
            .allocator()
            .allocate((long) Integer.BYTES * 2 * context.size(), Parts.of(stream));
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

  /** Gives back what the first calls used: they must be done, or their communicator gone. */
  private void connected() {
    if (cells != null) {
      Parts.of(device).allocator().free(cells);
      cells = null;
    }
    if (connecting != null) {
      Parts.of(device).giveStream(connecting);
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
              "rank " + context.rank() + ": not all ranks made the first calls in time");
        }
        look();
      }
    }
  }
}
