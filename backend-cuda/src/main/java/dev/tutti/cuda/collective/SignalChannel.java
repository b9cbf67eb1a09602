package dev.tutti.cuda.collective;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.FailureInfo;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.block.CudaStreamBlock;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.ChannelStatus;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One channel of a signal pad. Its kernels run on a stream of their own, and the caller waits for
 * them, after first waiting for the work in its current stream: a kernel that waited for that work
 * on the device would not observe a deadline until then. One thread at a time waits here; any
 * thread may cancel the wait.
 */
final class SignalChannel implements AutoCloseable {
  private static final long PADS = 8L * ChannelLayout.MAX_RANKS;
  private static final long CONTROL = PADS + 24;
  private static final long TIMEOUT = PADS + 32;
  private static final long WORD = PADS + 40;
  private static final long SLICE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long CANCEL_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST = Duration.ofDays(36_500);

  private final CudaDevice device;
  private final SymmetricPlan plan;
  private final int channel;
  private final long[] pads;
  private final Supplier<CudaStream> streams;
  private @Nullable Kit kit;
  private volatile boolean cancelled;

  /** Thrown when a wait is canceled. */
  static final class CancelledWaitException extends TuttiException {
    private static final long serialVersionUID = 1L;

    CancelledWaitException() {
      super("the wait was canceled");
    }
  }

  /** The resources that the first wait creates. */
  private static final class Kit {
    final CudaStream stream;
    final ControlWords control;
    final KernelParameters signal = new KernelParameters(3);
    final KernelParameters barrier = new KernelParameters(6);

    /** The pads, then channel, rank, ranks, control, timeout, and word, 8 bytes each. */
    final MemorySegment values;

    Kit(CudaDevice device, CudaStream stream, int channel, SymmetricPlan plan, long[] pads) {
      this.stream = stream;
      control = new ControlWords(device);
      values = Arena.ofAuto().allocate(WORD + 8, 8);
      for (int r = 0; r < pads.length; r++) {
        values.setAtIndex(ValueLayout.JAVA_LONG, r, pads[r] + plan.barriers());
      }
      values.set(ValueLayout.JAVA_INT, PADS, channel);
      values.set(ValueLayout.JAVA_INT, PADS + 8, plan.rank());
      values.set(ValueLayout.JAVA_INT, PADS + 16, plan.size());
      values.set(ValueLayout.JAVA_LONG, CONTROL, control.address());
      barrier.at(0, values);
      for (int i = 0; i < 5; i++) {
        barrier.at(1 + i, values.asSlice(PADS + 8L * i, 8));
      }
      signal.at(0, values.asSlice(WORD)).at(1, values.asSlice(CONTROL));
      signal.at(2, values.asSlice(TIMEOUT));
    }
  }

  /**
   * Creates a channel that has no resources yet.
   *
   * @param device this rank's device
   * @param plan the layout of the memory
   * @param channel the number of the channel
   * @param pads the address of each rank's pad
   * @param streams supplies a stream for exclusive use; it is later given back to the device
   */
  SignalChannel(
      CudaDevice device,
      SymmetricPlan plan,
      int channel,
      long[] pads,
      Supplier<CudaStream> streams) {
    this.device = device;
    this.plan = plan;
    this.channel = channel;
    this.pads = pads;
    this.streams = streams;
  }

  private Kit kit() {
    Parts.of(device).context().enter();
    Kit known = kit;
    if (known == null) {
      known = new Kit(device, streams.get(), channel, plan, pads);
      Parts.of(device).multiprocessors().enter();
      synchronized (this) {
        kit = known;
      }
    }
    return known;
  }

  /**
   * Waits for all ranks. If they do not arrive, the signals that this rank raised for them are
   * taken back.
   */
  void barrier(Duration timeout) {
    if (plan.size() == 1) {
      // As with peers, the host continues once the preceding work is done.
      device.currentStream().await(timeout);
      return;
    }
    Kit own = kit();
    long start = System.nanoTime();
    ChannelStatus status = run(own, Kernels.signalBarrier(), 0, timeout);
    if (status.outcome() == ChannelStatus.Outcome.OK) {
      return;
    }
    for (int r = 0; r < plan.size(); r++) {
      if (r != plan.rank()) {
        long barriers = pads[r] + plan.barriers();
        takeBack(own, barriers + plan.word(channel, plan.rank()));
      }
    }
    end(
        status,
        -1,
        start,
        "the barrier on channel " + channel + " timed out waiting for rank " + status.peer());
  }

  private void takeBack(Kit own, long word) {
    own.control.reset();
    ChannelStatus _ = launch(own, Kernels.waitSignal(), word, Duration.ofMillis(1));
  }

  void put(int rank, Duration timeout) {
    long start = System.nanoTime();
    long word = pads[rank] + plan.word(channel, plan.rank());
    ChannelStatus status = run(kit(), Kernels.putSignal(), word, timeout);
    end(
        status,
        rank,
        start,
        "rank " + rank + " has not consumed the last signal on channel " + channel);
  }

  void take(int rank, Duration timeout) {
    long start = System.nanoTime();
    long word = pads[plan.rank()] + plan.word(channel, rank);
    ChannelStatus status = run(kit(), Kernels.waitSignal(), word, timeout);
    end(status, rank, start, "no signal from rank " + rank + " on channel " + channel);
  }

  /** Runs a kernel after the caller's work and waits for it; a word of 0 means the barrier. */
  private ChannelStatus run(Kit own, Kernel kernel, long word, Duration timeout) {
    CudaStream caller = device.currentStream();
    if (caller.isCapturing()) {
      throw new IllegalStateException("a wait on the host cannot be captured: " + caller);
    }
    // The timeout of a barrier counts from the start of its kernel.
    boolean isBarrier = word == 0;
    long start = System.nanoTime();
    if (!awaitCaller(caller, start, isBarrier ? LONGEST : timeout)) {
      return new ChannelStatus(ChannelStatus.Outcome.TIMED_OUT, 0, channel);
    }
    Duration left = isBarrier ? timeout : timeout.minusNanos(System.nanoTime() - start);
    return launch(own, kernel, word, left);
  }

  /** Waits for the work in the caller's stream; returns false if that takes too long. */
  private boolean awaitCaller(CudaStream caller, long start, Duration timeout) {
    long limit = Math.min(TimeUnit.NANOSECONDS.convert(timeout), LONGEST.toNanos());
    try (CudaEvent before = caller.record()) {
      long now = start;
      while (!before.awaitReached(now + Math.min(CANCEL_NANOS, limit - (now - start)))) {
        if (cancelled) {
          throw new CancelledWaitException();
        }
        now = System.nanoTime();
        if (now - start >= limit) {
          return false;
        }
      }
      return true;
    }
  }

  private ChannelStatus launch(Kit own, Kernel kernel, long word, Duration timeout) {
    Parts.of(device).context().enter();
    long millis =
        Math.max(1, CudaStreamBlock.millis(timeout.isNegative() ? Duration.ZERO : timeout));
    own.control.reset();
    if (cancelled) {
      throw new CancelledWaitException();
    }
    own.values.set(ValueLayout.JAVA_LONG, TIMEOUT, millis);
    own.values.set(ValueLayout.JAVA_LONG, WORD, word);
    long parameters = word == 0 ? own.barrier.address() : own.signal.address();
    Parts.of(device)
        .context()
        .driver()
        .kernels()
        .launch(
            Parts.of(device).kernels().function(kernel.name()),
            1,
            32,
            own.stream.handle(),
            parameters);
    if (cancelled) {
      own.control.abort();
    }
    CudaEvent done = own.stream.record();
    while (!done.awaitReached(System.nanoTime() + SLICE_NANOS)) {
      Thread.onSpinWait();
    }
    return ChannelStatus.of(own.control.status());
  }

  private void end(ChannelStatus status, int peer, long start, String problem) {
    switch (status.outcome()) {
      case OK -> {}
      case ABORTED -> throw new CancelledWaitException();
      case TIMED_OUT ->
          throw new CollectiveTimeoutException(
              problem,
              FailureInfo.builder(plan.group(), plan.rank(), plan.size())
                  .peer(peer)
                  .elapsed(Duration.ofNanos(System.nanoTime() - start))
                  .build(),
              null);
    }
  }

  /** Cancels the wait in progress and all later ones. */
  void cancel() {
    cancelled = true;
    Kit own;
    synchronized (this) {
      own = kit;
    }
    if (own != null) {
      own.control.abort();
    }
  }

  /** Frees everything; no thread may be waiting anymore. */
  @Override
  public synchronized void close() {
    Kit own = kit;
    if (own != null) {
      kit = null;
      own.control.close();
      Parts.of(device).multiprocessors().leave();
      Parts.of(device).giveStream(own.stream);
    }
  }
}
