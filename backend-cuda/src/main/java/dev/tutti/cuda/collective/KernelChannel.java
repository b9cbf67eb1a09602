package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Multiprocessors;
import dev.tutti.cuda.access.Parts;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.ExchangeCall;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.Launch;
import dev.tutti.kernels.ReduceCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One rank's view of a channel of the kernels, with the structures for its calls. The kernels of a
 * channel must run one after another; the caller ensures this. Not thread-safe, except that any
 * thread may abort.
 */
final class KernelChannel implements AutoCloseable {
  final ChannelLayout layout;
  final ReduceCall reduce;
  final ExchangeCall exchange;
  final ControlWords control;
  private final HostKernels kernels;
  private final Multiprocessors multiprocessors;
  private final MemorySegment view;
  private final MemorySegment timeout;
  private final KernelParameters reduceParameters;
  private final KernelParameters exchangeParameters;
  private final KernelParameters barrierParameters;
  private boolean isCounted;

  /**
   * Creates a rank's view.
   *
   * @param device this rank's device
   * @param kernels the device's kernels
   * @param layout the channel, the same on all ranks
   * @param rank this rank's number in the channel
   * @param areas the ranks' areas, filled with zeros
   * @param state this rank's counters, filled with zeros
   */
  KernelChannel(
      CudaDevice device,
      HostKernels kernels,
      ChannelLayout layout,
      int rank,
      long[] areas,
      long state) {
    this.kernels = kernels;
    this.multiprocessors = Parts.of(device).multiprocessors();
    this.layout = layout;
    Arena arena = Arena.ofAuto();
    view = arena.allocate(ChannelLayout.CHANNEL_BYTES, Long.BYTES);
    timeout = arena.allocate(Long.BYTES, Long.BYTES);
    reduce = new ReduceCall(arena.allocate(ReduceCall.BYTES, Long.BYTES));
    exchange = new ExchangeCall(arena.allocate(ExchangeCall.BYTES, Long.BYTES));
    reduceParameters = new KernelParameters(2).at(0, view).at(1, reduce.memory());
    exchangeParameters = new KernelParameters(2).at(0, view).at(1, exchange.memory());
    barrierParameters = new KernelParameters(2).at(0, view).at(1, timeout);
    control = new ControlWords(device);
    layout.writeChannel(view, rank, control.address(), state, areas);
  }

  /** Launches the reduction that {@link #reduce} describes. */
  void launchReduce(Kernel kernel, Launch launch, CudaStream stream) {
    launch(kernel, launch, stream, reduceParameters);
  }

  /** Launches the exchange that {@link #exchange} describes. */
  void launchExchange(Kernel kernel, Launch launch, CudaStream stream) {
    launch(kernel, launch, stream, exchangeParameters);
  }

  /** Launches a barrier. */
  void launchBarrier(Kernel kernel, Launch launch, long timeoutNanos, CudaStream stream) {
    timeout.set(ValueLayout.JAVA_LONG, 0, timeoutNanos);
    launch(kernel, launch, stream, barrierParameters);
  }

  /** Launches a kernel, in parts if the device has no room for the whole. */
  private void launch(Kernel kernel, Launch launch, CudaStream stream, KernelParameters values) {
    enter();
    int lanes = launch.grid();
    int most = multiprocessors.lend(stream.handle(), lanes);
    try {
      if (most < lanes) {
        launchInParts(kernel, launch, most, stream.handle(), values);
      } else {
        kernels.launch(kernel, launch, stream.handle(), values.address());
      }
    } catch (RuntimeException e) {
      multiprocessors.takeBack(stream.handle());
      throw e;
    }
  }

  private void launchInParts(
      Kernel kernel, Launch launch, int most, long stream, KernelParameters values) {
    int lanes = launch.grid();
    int parts = Math.ceilDiv(lanes, most);
    Kernel some = Kernels.someLanes(kernel);
    try {
      for (int i = 0; i < parts; i++) {
        int first = i * lanes / parts;
        Launch part = launch.withGrid((i + 1) * lanes / parts - first);
        ChannelLayout.writeLanes(view, first, lanes);
        kernels.launch(some, part, stream, values.address());
      }
    } finally {
      ChannelLayout.writeLanes(view, 0, 0);
    }
  }

  /** Counts this channel among those that may occupy multiprocessors, from now until its close. */
  void enter() {
    if (!isCounted) {
      isCounted = true;
      multiprocessors.enter();
    }
  }

  /** Notes where the last kernel ends. */
  void launched(CudaStream stream, CudaEvent end) {
    multiprocessors.launched(stream.handle(), Parts.of(end));
  }

  /** Notes that the last kernel was captured. */
  void captured(CudaStream stream) {
    multiprocessors.takeBack(stream.handle());
  }

  /** Frees what belongs to this rank alone; nothing may be running on the channel. */
  @Override
  public void close() {
    control.close();
    if (isCounted) {
      isCounted = false;
      multiprocessors.leave();
    }
  }
}
