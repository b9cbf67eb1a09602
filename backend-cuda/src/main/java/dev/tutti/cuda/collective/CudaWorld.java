package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.FarRanksException;
import dev.tutti.cuda.share.IpcChannel;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.cuda.share.PeerMemory;
import dev.tutti.cuda.share.PeerNotes;
import dev.tutti.cuda.share.PeerWorld;
import dev.tutti.cuda.share.Sharing;
import dev.tutti.cuda.share.StoreExchange;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.PeerLinks;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The resources that the ranks of a group share on their devices, from the rendezvous until the
 * group closes.
 */
public final class CudaWorld implements AutoCloseable {
  /*
   * The layout of each rank's memory: its area and counters for the channel of all ranks, then, for
   * each peer, those for the channel to the peer and those for the channel from it.
   */
  private static final System.Logger LOG = System.getLogger(CudaWorld.class.getName());
  private static final int PAIR_LANES = 8;
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long ALIGNMENT = 256;

  private final CudaDevice device;
  private final int rank;
  private final int size;
  private final Time time;
  private final IpcChannel channel;
  private final List<CudaStream> streams;
  private final AtomicInteger messageStreams = new AtomicInteger();
  private final CudaSymmetricMemories symmetric;
  private final @Nullable PeerMemory memory;
  private final @Nullable KernelChannel all;
  private final @Nullable CollectiveLauncher collectives;
  private final @Nullable GraphReplayMonitor replays;
  private final @Nullable MessageMatcher messages;
  private final List<MessageLauncher> messageLanes = new ArrayList<>();
  private final List<KernelChannel> channels = new ArrayList<>();

  /**
   * The layout of each rank's memory, and the channels and limits that apply to it.
   *
   * @param wide the channel of all ranks
   * @param narrow the channel between one sender and one receiver
   */
  private record Plan(ChannelLayout wide, ChannelLayout narrow, AllReduceLimits limits) {
    static Plan of(Settings settings, List<PeerInfo> ranks) {
      int size = ranks.size();
      int lanes =
          ChannelLayout.lanes(
              settings.get(CudaSettings.LANES),
              PeerInfo.leastMultiprocessors(ranks),
              PeerInfo.mostOnOneDevice(ranks));
      long slot =
          CudaSettings.bytes(settings, CudaSettings.CHUNK_BYTES, size <= 4 ? 32 << 10 : 16 << 10);
      int chunk = (int) Math.min(1 << 24, slot);
      return new Plan(
          new ChannelLayout(size, lanes, 512, chunk, ChannelLayout.fullSlots(size)),
          new ChannelLayout(2, Math.min(PAIR_LANES, lanes), 512, chunk, 0),
          CudaSettings.limits(settings, size, PeerInfo.slowestLinks(ranks)));
    }

    long bytes(int size) {
      return CudaWorld.bytes(wide) + 2L * (size - 1) * CudaWorld.bytes(narrow);
    }
  }

  /** The resources of a group of more than one rank. */
  private record Shared(Plan plan, HostKernels kernels, RankNotes notes, PeerMemory memory) {}

  private CudaWorld(
      BackendContext context,
      CudaDevice device,
      IpcChannel channel,
      List<CudaStream> streams,
      PeerWorld peers,
      @Nullable Shared shared) {
    this.device = device;
    this.rank = context.rank();
    this.size = context.size();
    this.time = context.time();
    this.channel = channel;
    this.streams = streams;
    this.symmetric = new CudaSymmetricMemories(device, peers, context.group(), context.settings());
    if (shared == null) {
      messages = null;
      memory = null;
      all = null;
      collectives = null;
      replays = null;
      return;
    }
    try {
      HostKernels kernels = shared.kernels;
      ChannelLayout wide = shared.plan.wide;
      ChannelLayout narrow = shared.plan.narrow;
      long wideBytes = bytes(wide);
      long pairBytes = bytes(narrow);
      memory = shared.memory;
      long[] areas = new long[size];
      for (int r = 0; r < size; r++) {
        areas[r] = memory.address(r);
      }
      all = new KernelChannel(device, kernels, wide, rank, areas, state(areas[rank], wide));
      channels.add(all);
      int neighbor = onSameDevice(peers);
      if (neighbor > rank) {
        LOG.log(
            Level.WARNING,
            () -> HardwareQueues.ofNeighbors(context.rank(), neighbor, context.device()));
      }
      replays = new GraphReplayMonitor(all.control, rank, context.onFailure());
      collectives =
          new CollectiveLauncher(
              device, all, shared.plan.limits, symmetric, rank, neighbor, replays);
      @Nullable MessageLauncher[] sends = new @Nullable MessageLauncher[size];
      @Nullable MessageLauncher[] receives = new @Nullable MessageLauncher[size];
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          long mine = memory.address(rank) + wideBytes + 2L * place(rank, peer) * pairBytes;
          long theirs = memory.address(peer) + wideBytes + 2L * place(peer, rank) * pairBytes;
          sends[peer] = launcher(kernels, narrow, peer, true, mine, theirs + pairBytes);
          receives[peer] = launcher(kernels, narrow, peer, false, theirs, mine + pairBytes);
        }
      }
      messages = new MessageMatcher(device, shared.notes, rank, collectives, sends, receives);
      messages.listen();
    } catch (RuntimeException | Error e) {
      channels.forEach(KernelChannel::close);
      throw e;
    }
  }

  /**
   * Returns the settings that must be the same on all ranks and whose differences would not be
   * noticed otherwise.
   */
  private static String choices(Settings settings, int size) {
    AllReduceLimits limits = CudaSettings.limits(settings, size, PeerLinks.SWITCH);
    return "%s=%s %s=%s"
        .formatted(
            CudaSettings.ONE_SHOT_BYTES.name(),
            limits.oneShotBytes(),
            CudaSettings.TWO_SHOT_BYTES.name(),
            limits.twoShotBytes());
  }

  /** Returns another rank in this process and on this device, or -1. */
  private int onSameDevice(PeerWorld peers) {
    String own = peers.ranks().get(rank).pciBusId();
    for (int r = 0; r < size; r++) {
      if (r != rank && peers.isSameProcess(r) && peers.ranks().get(r).pciBusId().equals(own)) {
        return r;
      }
    }
    return -1;
  }

  /** Returns the index of the part that a rank shares only with the given peer. */
  private static int place(int owner, int peer) {
    return peer < owner ? peer : peer - 1;
  }

  private MessageLauncher launcher(
      HostKernels kernels,
      ChannelLayout layout,
      int peer,
      boolean isSender,
      long senderArea,
      long receiverArea) {
    long own = isSender ? senderArea : receiverArea;
    KernelChannel pair =
        new KernelChannel(
            device,
            kernels,
            layout,
            isSender ? 0 : 1,
            new long[] {senderArea, receiverArea},
            state(own, layout));
    channels.add(pair);
    MessageLauncher made =
        new MessageLauncher(device, pair, this::takeMessageStream, rank, peer, isSender);
    messageLanes.add(made);
    return made;
  }

  /**
   * Returns the next stream for messages; the first stream of the list is used for setup. Streams
   * are assigned in the order of first messages, because a device has few hardware queues, and
   * streams share them in order of creation.
   */
  private CudaStream takeMessageStream() {
    return streams.get(1 + messageStreams.getAndIncrement());
  }

  /** Returns the number of bytes that each rank has for a channel: its area, then its counters. */
  private static long bytes(ChannelLayout layout) {
    return roundUp(layout.areaBytes()) + roundUp(layout.stateBytes());
  }

  private static long state(long area, ChannelLayout layout) {
    return area + roundUp(layout.areaBytes());
  }

  private static long roundUp(long bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  /**
   * Meets the other ranks and shares memory with them.
   *
   * @throws FarRanksException on all ranks, if there are too many ranks or they are on several
   *     hosts
   * @throws BackendException if the ranks cannot share memory
   */
  public static CudaWorld join(BackendContext context, Cuda cuda) {
    long until = System.nanoTime() + context.timeout().toNanos();
    Settings settings = context.settings();
    if (context.size() > ChannelLayout.MAX_RANKS) {
      throw new FarRanksException(
          "rank %s: a group on CUDA devices can have %s ranks at most, not %s"
              .formatted(context.rank(), ChannelLayout.MAX_RANKS, context.size()));
    }
    String _ = settings.get(CudaSettings.SYMMETRIC_MEMORY); // rejects invalid values
    CudaDevice device = cuda.device(context.device().index());
    StoreExchange exchange =
        new StoreExchange(context.store(), "cuda", context.rank(), context.size());
    CudaDriver driver = Parts.of(cuda).driver();
    PeerInfo own =
        PeerInfo.here(
            driver.devices().pciBusId(device.index()),
            settings.get(CudaSettings.OVERLAPPING_DEVICES),
            driver.devices().attribute(device.index(), DeviceAttribute.MULTIPROCESSORS),
            choices(settings, context.size()),
            Parts.of(cuda).links(device.index()));
    HardwareQueues.warning(settings)
        .ifPresent(text -> LOG.log(Level.WARNING, "rank {0}: {1}", context.rank(), text));
    List<PeerInfo> ranks = PeerInfo.meet(exchange, own, until);
    Sharing sharing;
    @Nullable Plan plan;
    @Nullable HostKernels kernels;
    List<CudaStream> streams;
    try {
      sharing = Sharing.choose(settings.get(CudaSettings.SHARING), driver, device.index());
      PeerAccess.require(cuda, device, ranks, sharing, context.rank());
      plan = context.size() == 1 ? null : Plan.of(settings, ranks);
      kernels = context.size() == 1 ? null : new HostKernels(device);
      streams = Parts.of(device).takeStreams(2 * (context.size() - 1) + 1);
    } catch (BackendException e) {
      // Only this rank sees this failure; the others would wait for it until their deadline.
      IpcChannel.refuse(exchange, e, until);
      throw e;
    }
    Path directory = Path.of(settings.text("TMPDIR").orElse("/tmp"));
    IpcChannel channel;
    try {
      channel = IpcChannel.open(directory, exchange, until);
    } catch (RuntimeException e) {
      streams.forEach(Parts.of(device)::giveStream);
      throw e;
    }
    RankNotes notes = null;
    PeerMemory memory = null;
    boolean kept = false;
    try {
      PeerWorld peers =
          new PeerWorld(
              Parts.of(device).context(),
              streams.get(0).handle(),
              exchange,
              channel,
              ranks,
              sharing,
              Parts.of(device).allocator()::makeRoom);
      Shared shared = null;
      if (plan != null && kernels != null) {
        notes = PeerNotes.connect(context, until);
        memory = PeerMemory.allocate(peers, plan.bytes(context.size()), 0, until);
        shared = new Shared(plan, kernels, notes, memory);
      }
      CudaWorld world;
      try {
        world = new CudaWorld(context, device, channel, streams, peers, shared);
      } catch (RuntimeException | Error e) {
        BackendException told = refusal(e, context.rank());
        byte[] text = String.valueOf(told.getMessage()).getBytes(StandardCharsets.UTF_8);
        List<byte[]> _ = exchange.allGather(text, until);
        throw told;
      }
      try {
        requireAll(exchange.allGather(new byte[0], until), context.rank());
      } catch (RuntimeException e) {
        kept = true;
        world.close();
        throw e;
      }
      kept = true;
      return world;
    } finally {
      if (!kept) {
        channel.close();
        if (notes != null) {
          notes.close();
        }
        if (memory != null) {
          memory.close();
        }
        streams.forEach(Parts.of(device)::giveStream);
      }
    }
  }

  /** Returns the exception that notifies all ranks of a failure. */
  private static BackendException refusal(Throwable e, int rank) {
    return e instanceof BackendException known
        ? known
        : new BackendException("rank " + rank + ": cannot join a group on CUDA devices: " + e, e);
  }

  /** Fails this rank if any rank reported a problem. */
  private static void requireAll(List<byte[]> problems, int rank) {
    for (int r = 0; r < problems.size(); r++) {
      if (problems.get(r).length > 0) {
        String problem = Printable.decode(problems.get(r));
        throw new BackendException("rank " + rank + ": rank " + r + " cannot join: " + problem);
      }
    }
  }

  public CudaDevice device() {
    return device;
  }

  int rank() {
    return rank;
  }

  int size() {
    return size;
  }

  @Nullable CollectiveLauncher collectives() {
    return collectives;
  }

  /** Returns the matcher of sends and receives; null in a group of one. */
  @Nullable MessageMatcher messages() {
    return messages;
  }

  CudaSymmetricMemories symmetric() {
    return symmetric;
  }

  void abort(Throwable cause) {
    if (all != null) {
      all.control.abort();
    }
    messageLanes.forEach(MessageLauncher::abort);
    if (messages != null) {
      messages.abort(cause);
    }
    symmetric.abort(cause);
    channel.cancel();
    // No message starts anymore.
    messageLanes.forEach(MessageLauncher::keepWhatIsUsed);
  }

  /**
   * Frees everything once the kernels have ended, including those of graph replays, but not those
   * of replays that begin from now on. Memory that a kernel still uses is leaked: freeing it would
   * break the device for the whole process.
   */
  @Override
  public void close() {
    if (messages != null) {
      messages.close();
    }
    if (replays != null) {
      replays.close();
    }
    abort(new IllegalStateException("the group is closed"));
    channel.close();
    if (memory == null || all == null || collectives == null) {
      symmetric.close();
      streams.forEach(Parts.of(device)::giveStream);
      return;
    }
    long allUntil = time.nanoTime() + CLOSE_NANOS;
    long until = System.nanoTime() + CLOSE_NANOS;
    boolean idle = collectives.awaitIdle(until);
    for (MessageLauncher each : messageLanes) {
      idle &= each.awaitIdle(until);
    }
    if (idle && replays != null && replays.hasRecorded()) {
      // Nothing else records a replay.
      idle = Parts.of(device).owner().awaitAll(time, allUntil);
    }
    if (!idle) {
      LOG.log(
          Level.WARNING, "rank {0}: kernels are still running; their memory is not freed", rank);
      return;
    }
    messageLanes.forEach(MessageLauncher::close);
    collectives.close();
    symmetric.close();
    all.close();
    memory.close();
    streams.forEach(Parts.of(device)::giveStream);
  }
}
