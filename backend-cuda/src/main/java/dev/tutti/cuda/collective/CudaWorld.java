package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.access.StaleGraphs;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.IpcChannel;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.cuda.share.PeerMemory;
import dev.tutti.cuda.share.PeerWorld;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
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
  private static final System.Logger LOG = System.getLogger(CudaWorld.class.getName());
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long RELEASE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final CudaDevice device;
  private final String group;
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
  private final @Nullable CopiedAllReduce copies;
  private final @Nullable MessageMatcher messages;
  private final List<MessageLauncher> messageLanes = new ArrayList<>();
  private final List<KernelChannel> channels = new ArrayList<>();

  /** Creates the world of a rank once all ranks have met; {@link CudaJoin} does that. */
  CudaWorld(
      BackendContext context,
      CudaDevice device,
      IpcChannel channel,
      List<CudaStream> streams,
      PeerWorld peers,
      @Nullable SharedParts shared) {
    this.device = device;
    this.group = context.group();
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
      copies = null;
      return;
    }
    try {
      HostKernels kernels = shared.kernels();
      MemoryPlan plan = shared.plan();
      memory = shared.memory();
      long[] areas = new long[size];
      for (int r = 0; r < size; r++) {
        areas[r] = memory.address(r);
      }
      all =
          new KernelChannel(
              device, kernels, plan.wide(), rank, areas, plan.stateOfAll(areas[rank]));
      channels.add(all);
      // All ranks create groups in one order, but need not launch in it.
      all.enter();
      Parts.of(device)
          .multiprocessors()
          .shareAmong(PeerInfo.processesOnDevice(peers.ranks(), rank));
      int neighbor = onSameDevice(peers);
      if (neighbor > rank) {
        LOG.log(
            Level.WARNING,
            () -> HardwareQueues.ofNeighbors(context.rank(), neighbor, context.device()));
      }
      copies =
          new CopiedAllReduce(
              time,
              device,
              kernels,
              symmetric,
              plan.wide(),
              rank,
              CudaSettings.bytes(context.settings(), CudaSettings.COPIES_PIECE_BYTES, 0));
      replays = new GraphReplayMonitor(all.control, rank, context.onFailure(), copies.progress());
      collectives =
          new CollectiveLauncher(
              time,
              device,
              all,
              plan.limits(),
              symmetric,
              rank,
              neighbor,
              replays,
              copies,
              CopiesRule.of(context.settings(), peers.ranks()));
      @Nullable MessageLauncher[] sends = new @Nullable MessageLauncher[size];
      @Nullable MessageLauncher[] receives = new @Nullable MessageLauncher[size];
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          sends[peer] = launcher(kernels, plan, areas, rank, peer);
          receives[peer] = launcher(kernels, plan, areas, peer, rank);
        }
      }
      messages = new MessageMatcher(device, shared.notes(), rank, collectives, sends, receives);
      messages.listen();
    } catch (RuntimeException | Error e) {
      channels.forEach(KernelChannel::close);
      throw e;
    }
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

  private MessageLauncher launcher(
      HostKernels kernels, MemoryPlan plan, long[] memory, int sender, int receiver) {
    boolean isSender = sender == rank;
    long[] areas = {
      plan.to(memory[sender], sender, receiver), plan.from(memory[receiver], receiver, sender)
    };
    int own = isSender ? 0 : 1;
    KernelChannel pair =
        new KernelChannel(device, kernels, plan.narrow(), own, areas, plan.stateOfPair(areas[own]));
    channels.add(pair);
    int peer = isSender ? receiver : sender;
    MessageLauncher made =
        new MessageLauncher(time, device, pair, this::takeMessageStream, rank, peer, isSender);
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
    if (copies != null) {
      copies.abort();
    }
    abortKernels(cause);
  }

  private void abortKernels(Throwable cause) {
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

  private boolean awaitIdle(CollectiveLauncher launcher, long until, long allUntil) {
    boolean idle = launcher.awaitIdle(until);
    for (MessageLauncher each : messageLanes) {
      idle &= each.awaitIdle(until);
    }
    // Nothing else records a replay.
    return idle
        && (replays == null
            || !replays.hasRecorded()
            || Parts.of(device).owner().awaitAll(time, allUntil));
  }

  /**
   * Frees everything once the kernels have ended, including those of graph replays, but not those
   * of replays that begin from now on. Memory that a kernel still uses is leaked: freeing it would
   * break the device for the whole process. If something was captured, nothing else gets the
   * addresses that graphs have.
   */
  @Override
  public void close() {
    if (messages != null) {
      messages.close();
    }
    if (replays != null) {
      replays.close();
    }
    abortKernels(new IllegalStateException("the group is closed"));
    channel.close();
    if (memory == null || all == null || collectives == null || copies == null) {
      symmetric.close();
      streams.forEach(Parts.of(device)::giveStream);
      return;
    }
    long allUntil = time.nanoTime() + CLOSE_NANOS;
    long until = System.nanoTime() + CLOSE_NANOS;
    boolean idle = awaitIdle(collectives, until, allUntil);
    if (!idle) {
      // Not before: peers would get what copies that end early leave.
      copies.abort();
      idle = awaitIdle(collectives, until + RELEASE_NANOS, allUntil + RELEASE_NANOS);
    }
    idle = idle && copies.close(allUntil + RELEASE_NANOS);
    if (!idle) {
      LOG.log(
          Level.WARNING, "rank {0}: kernels are still running; their memory is not freed", rank);
      return;
    }
    messageLanes.forEach(MessageLauncher::close);
    collectives.close();
    symmetric.close();
    if (replays != null && replays.hasRecorded()) {
      StaleGraphs graphs = Parts.of(device).staleGraphs();
      graphs.keep(group, all::close);
      graphs.keep(group, memory.retire());
    } else {
      all.close();
      memory.close();
    }
    streams.forEach(Parts.of(device)::giveStream);
  }
}
