package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.AllReduceLimits.Algorithm;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.ExchangeCall;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.Launch;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * A launcher of the collectives of a group of two or more ranks, in the group's order. Not
 * thread-safe.
 */
public final class CollectiveLauncher {
  /*
   * All collectives of a group share one channel, whose kernels must run one after another. Ranks
   * issue them in the same order, but need not use the same streams. Therefore, when the stream
   * differs from the last one, it is made to wait for the last kernel. This way, two streams of a
   * group cannot deadlock.
   */
  private static final long PACKET_LIMIT = 64 << 10;
  private static final long ALIGNMENT = 16;

  private static final String ONE_SHOT = "cuda/one-shot";
  private static final String TWO_SHOT = "cuda/two-shot";
  private static final String CHUNKS = "cuda/chunks";
  private static final String COPIES = "cuda/copies";

  private final Time time;
  private final CudaDevice device;
  private final KernelChannel channel;
  private final AllReduceLimits limits;
  private final CudaSymmetricMemories symmetric;
  private final int rank;
  private final int size;
  private final long packetLimit;
  private final ChannelEvents events;
  private final GraphReplayMonitor replays;
  private final CopiedAllReduce copies;
  private final CopiesRule copiesRule;
  private CudaStream lastStream;
  private @Nullable CudaEvent lastEvent;
  private CudaStream stream;
  private volatile @Nullable Operation lastOp;
  private volatile long lastNumber;
  private volatile @Nullable Leaver leaver;
  private final int neighbor;
  private boolean hasParts;
  private int partsLaunched;

  /**
   * Creates a launcher.
   *
   * @param time the time of the group
   * @param device this rank's device
   * @param channel the channel of all ranks
   * @param limits the sizes at which each algorithm runs
   * @param symmetric the group's symmetric memories, in which tensors may lie
   * @param rank this rank's number
   * @param neighbor another rank in this process and on this device, or -1
   * @param replays notified of collectives that are captured into graphs
   * @param copies the all-reduce by copy engines
   * @param copiesRule when it is used
   */
  CollectiveLauncher(
      Time time,
      CudaDevice device,
      KernelChannel channel,
      AllReduceLimits limits,
      CudaSymmetricMemories symmetric,
      int rank,
      int neighbor,
      GraphReplayMonitor replays,
      CopiedAllReduce copies,
      CopiesRule copiesRule) {
    this.time = time;
    this.device = device;
    this.channel = channel;
    this.limits = limits;
    this.symmetric = symmetric;
    this.rank = rank;
    this.neighbor = neighbor;
    this.replays = replays;
    this.copies = copies;
    this.copiesRule = copiesRule;
    this.size = channel.layout.ranks();
    this.stream = device.defaultStream();
    this.lastStream = stream;
    this.packetLimit = Math.min(PACKET_LIMIT, channel.layout.messageCapacity());
    int[] ranks = IntStream.range(0, size).toArray();
    this.events = new ChannelEvents(device, new KernelOutcome(channel.control, rank, ranks));
  }

  /** A peer that closed the group, and its last collective that had a kernel. */
  private record Leaver(int rank, long lastSequence) {}

  /** Returns the number of the last operation that had a kernel, or 0. */
  long lastSequence() {
    return lastNumber;
  }

  /**
   * Fails the operations that wait for a peer that closed the group, now and in the future.
   * Thread-safe.
   */
  void leave(int peer, long itsLastSequence) {
    // Written before the operation is read; a launch sets the operation, then reads this.
    leaver = new Leaver(peer, itsLastSequence);
    Operation last = lastOp;
    if (last != null && last.sequenceNumber() > itsLastSequence && !last.isDone()) {
      last.fail(closed(peer), peer);
    }
  }

  public static PeerLostException closed(int peer) {
    return new PeerLostException(peer, "rank " + peer + " closed the group", null);
  }

  private void begin(Operation op) {
    Parts.of(device).context().enter();
    stream = device.currentStream();
    if (neighbor >= 0 && stream.equals(device.defaultStream())) {
      throw new UnsupportedOperationException(
          ("%s on rank %s: rank %s of this process also uses %s, and the kernels of both ranks in"
               + " its default stream would wait for each other forever; give each rank a current"
               + " stream of its own (CudaStream.use)")
              .formatted(op.type().label(), rank, neighbor, device));
    }
    CudaEvent last = lastEvent;
    if (last != null && !stream.equals(lastStream) && !stream.isCapturing()) {
      stream.waitFor(last);
    }
  }

  /**
   * Launches an operation in parts; the operation is done when its last part is.
   *
   * @param op the operation
   * @param parts launches the parts; may launch none
   * @throws BackendException if some parts were launched and others could not be, because the other
   *     ranks may have launched all of them
   */
  void inParts(Operation op, Runnable parts) {
    partsLaunched = 0;
    hasParts = true;
    RuntimeException failure = null;
    try {
      parts.run();
    } catch (RuntimeException e) {
      failure = e;
    } finally {
      hasParts = false;
    }
    if (partsLaunched > 0) {
      trackParts(op, failure);
    } else if (failure != null) {
      throw failure;
    }
  }

  private void trackParts(Operation op, @Nullable RuntimeException failure) {
    try {
      track(op);
    } catch (RuntimeException e) {
      if (failure == null) {
        throw e;
      }
      failure.addSuppressed(e);
    }
    if (failure instanceof BackendException) {
      throw failure;
    } else if (failure != null) {
      throw new BackendException(
          op.type().label() + " on rank " + rank + ": only part of it was launched", failure);
    }
  }

  private void end(Operation op) {
    if (hasParts) {
      partsLaunched++;
    } else {
      track(op);
    }
  }

  private void track(Operation op) {
    if (Parts.of(device).context().driver().streams().isCapturing(stream.handle())) {
      replays.recorded();
      symmetric.recorded();
      channel.captured(stream);
      return;
    }
    ChannelEvent event = events.take(op);
    Parts.of(event.event()).recordIn(stream.handle());
    channel.launched(stream, event.event());
    lastEvent = event.event();
    lastStream = stream;
    op.enqueued(event);
    lastNumber = op.sequenceNumber();
    lastOp = op;
    Leaver left = leaver;
    if (left != null && op.sequenceNumber() > left.lastSequence) {
      throw closed(left.rank);
    }
  }

  /** Returns the time that remains for an operation, for use by its kernel. */
  static long nanosLeft(Operation op, Time time) {
    return Math.max(TimeUnit.MILLISECONDS.toNanos(1), op.deadlineNanos() - time.nanoTime());
  }

  /** Waits until no kernel of the channel runs; returns false if that is not so by the deadline. */
  boolean awaitIdle(long deadlineNanos) {
    CudaEvent last = lastEvent;
    return last == null || last.awaitReached(deadlineNanos);
  }

  /** Frees the events; no kernel of the channel may be running. */
  void close() {
    events.close();
  }

  /** Returns the algorithm that the caller requested. */
  static Algorithm algorithm(String asked) {
    return switch (asked) {
      case "one-shot" -> Algorithm.ONE_SHOT;
      case "two-shot" -> Algorithm.TWO_SHOT;
      case "chunks" -> Algorithm.CHUNKS;
      case "copies" -> Algorithm.COPIES;
      default -> throw new IllegalArgumentException("no algorithm '" + asked + "'");
    };
  }

  /** Returns the path that an operation by an algorithm reports. */
  static String path(Algorithm algorithm) {
    return switch (algorithm) {
      case ONE_SHOT -> ONE_SHOT;
      case TWO_SHOT -> TWO_SHOT;
      case CHUNKS -> CHUNKS;
      case COPIES -> COPIES;
    };
  }

  /** Returns why an algorithm cannot reduce a tensor, the same on all ranks; or empty. */
  Optional<String> reasonAgainst(Algorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    if (algorithm == Algorithm.COPIES && copiesRule.shareInProcess()) {
      return Optional.of("ranks of one process share a device");
    }
    if (AllReduceLimits.fits(
        algorithm, tensor.byteSize(), tensor.dtype(), reduceOp.kind(), channel.layout)) {
      return Optional.empty();
    }
    return Optional.of(
        algorithm == Algorithm.COPIES
            ? "it computes sums and means of real numbers only"
            : tensor.byteSize() + " bytes do not fit into its packets");
  }

  void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) {
    ChannelLayout layout = channel.layout;
    long bytes = tensor.byteSize();
    long address = tensor.segment().address();
    String asked = op.call().algorithm();
    Algorithm algorithm =
        asked != null
            ? algorithm(asked)
            : isCopied(op, tensor, reduceOp)
                ? Algorithm.COPIES
                : limits.choose(bytes, tensor.dtype(), reduceOp.kind(), layout);
    if (algorithm == Algorithm.COPIES) {
      copy(op, tensor, reduceOp);
      return;
    }
    op.took(path(algorithm));
    Kernel kernel =
        switch (algorithm) {
          case ONE_SHOT -> Kernels.oneShot(tensor.dtype(), reduceOp.kind());
          case TWO_SHOT -> Kernels.twoShot(tensor.dtype(), reduceOp.kind());
          default -> Kernels.chunks(tensor.dtype(), reduceOp.kind());
        };
    begin(op);
    channel.reduce.allReduce(address, address, bytes, size);
    if (algorithm == Algorithm.CHUNKS) {
      shareResult(address, bytes);
    }
    launchReduce(op, kernel, bytes, reduceOp);
  }

  /** Returns whether copies are the fastest way here, the same on all ranks. */
  private boolean isCopied(Operation op, Tensor tensor, ReduceOp reduceOp) {
    long address = tensor.segment().address();
    long bytes = tensor.byteSize();
    return op.call().isBesideComputation()
        && bytes >= copiesRule.leastBytes()
        && Kernels.addsParts(tensor.dtype(), reduceOp.kind())
        && copies.isInPlace(address, bytes)
        && copies.isReady(op, true);
  }

  private void copy(Operation op, Tensor tensor, ReduceOp reduceOp) {
    long address = tensor.segment().address();
    long bytes = tensor.byteSize();
    begin(op);
    if (!copies.isReady(op, copies.isInPlace(address, bytes))) {
      throw new UnsupportedOperationException(
          ("%s on rank %s: there is no memory for copies; reduce once by them before a stream is"
                  + " captured, or make room on the devices")
              .formatted(op.type().label(), rank));
    }
    op.took(COPIES);
    if (stream.isCapturing()) {
      copies.progress().allow(nanosLeft(op, time));
    }
    copies.launch(address, bytes, tensor.dtype(), reduceOp, stream);
    end(op);
  }

  /** Lets peers write the result directly to its destination, if that lies in symmetric memory. */
  private void shareResult(long address, long bytes) {
    CudaSymmetricMemory memory =
        ((address | bytes) & (ALIGNMENT - 1)) == 0 ? symmetric.find(address, bytes) : null;
    if (memory != null) {
      for (int r = 0; r < size; r++) {
        channel.reduce.shared(r, memory.addressFor(r, address), memory.plan().number());
      }
    }
  }

  private void launchReduce(Operation op, Kernel kernel, long bytes, ReduceOp reduceOp) {
    Launch launch = kernel.launch(bytes, channel.layout);
    channel
        .reduce
        .op(reduceOp)
        .timeoutNanos(nanosLeft(op, time))
        .chunk(AllReduceLimits.chunkBytes(bytes, launch, channel.layout));
    channel.launchReduce(kernel, launch, stream);
    end(op);
  }

  void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) {
    long bytes = tensor.byteSize();
    long in = tensor.segment().address();
    begin(op);
    if (limits.choose(bytes, tensor.dtype(), reduceOp.kind(), channel.layout)
        == Algorithm.ONE_SHOT) {
      op.took(ONE_SHOT);
      channel.reduce.allReduce(in, rank == root ? in : 0, bytes, size);
      launchReduce(op, Kernels.oneShot(tensor.dtype(), reduceOp.kind()), bytes, reduceOp);
    } else {
      op.took(CHUNKS);
      channel.reduce.reduce(in, in, bytes, size, root);
      shareResult(in, bytes);
      launchReduce(op, Kernels.chunks(tensor.dtype(), reduceOp.kind()), bytes, reduceOp);
    }
  }

  void reduceScatter(Operation op, Tensor output, long input, ReduceOp reduceOp) {
    long part = output.byteSize();
    long bytes = part * size;
    begin(op);
    channel.reduce.reduceScatter(input, output.segment().address(), part, size);
    boolean twoShot = limits.allowsTwoShot(bytes, output.dtype(), reduceOp.kind(), channel.layout);
    op.took(twoShot ? TWO_SHOT : CHUNKS);
    Kernel kernel =
        twoShot
            ? Kernels.twoShot(output.dtype(), reduceOp.kind())
            : Kernels.chunks(output.dtype(), reduceOp.kind());
    launchReduce(op, kernel, bytes, reduceOp);
  }

  /**
   * Reduces parts of unequal size.
   *
   * @param input the address of all parts, one after another
   * @param partBytes the size of each part in bytes, not all 0
   */
  void reduceScatter(Operation op, Tensor output, long input, long[] partBytes, ReduceOp reduceOp) {
    long bytes = LongStream.of(partBytes).max().orElse(0) * size;
    begin(op);
    channel.reduce.reduceScatter(input, output.segment().address(), partBytes);
    boolean twoShot =
        Kernels.hasFullPackets(output.dtype(), reduceOp.kind())
            && limits.allowsTwoShot(bytes, output.dtype(), reduceOp.kind(), channel.layout);
    op.took(twoShot ? TWO_SHOT : CHUNKS);
    Kernel kernel =
        twoShot
            ? Kernels.unequalTwoShot(output.dtype())
            : Kernels.unequalChunks(output.dtype(), reduceOp.kind());
    launchReduce(op, kernel, bytes, reduceOp);
  }

  void broadcast(Operation op, Tensor tensor, int root) {
    long bytes = tensor.byteSize();
    long address = tensor.segment().address();
    if (bytes > packetLimit) {
      begin(op);
      op.took(CHUNKS);
      channel.reduce.broadcast(address, bytes, size, root);
      shareResult(address, bytes);
      launchReduce(op, Kernels.broadcast(), bytes, ReduceOp.SUM);
      return;
    }
    ExchangeCall call = beginExchange(op);
    for (int r = 0; r < size; r++) {
      if (rank == root && r != root) {
        call.send(r, address, bytes);
      }
    }
    if (rank != root) {
      call.receive(root, address, bytes);
    }
    launchExchange(op, bytes);
  }

  /** Begins an exchange; the caller then specifies what each rank sends, and launches it. */
  ExchangeCall beginExchange(Operation op) {
    begin(op);
    op.took("cuda/exchange");
    return channel.exchange.begin(packetLimit, nanosLeft(op, time));
  }

  /**
   * Launches an exchange.
   *
   * @param mostBytes the largest number of bytes that this rank moves to or from any one rank
   */
  void launchExchange(Operation op, long mostBytes) {
    Kernel kernel = Kernels.exchange();
    channel.launchExchange(kernel, kernel.launch(mostBytes, channel.layout), stream);
    end(op);
  }

  void barrier(Operation op) {
    begin(op);
    op.took("cuda/barrier");
    Kernel kernel = Kernels.barrier();
    channel.launchBarrier(kernel, kernel.launch(0, channel.layout), nanosLeft(op, time), stream);
    end(op);
  }
}
