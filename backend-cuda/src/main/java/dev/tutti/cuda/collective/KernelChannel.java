package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.ExchangeCall;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Launch;
import dev.tutti.kernels.ReduceCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A channel of the kernels as one rank uses it, with the structures of its calls. Kernels of a
 * channel run one after the other; who uses it sees to that. One thread at a time, but any thread
 * may abort.
 */
final class KernelChannel implements AutoCloseable {
  final ChannelLayout layout;
  final ReduceCall reduce;
  final ExchangeCall exchange;
  final ControlWords control;
  private final HostKernels kernels;
  private final MemorySegment view;
  private final MemorySegment timeout;
  private final KernelParameters reduceParameters;
  private final KernelParameters exchangeParameters;
  private final KernelParameters barrierParameters;

  /**
   * Creates a rank's view.
   *
   * @param device of this rank
   * @param kernels of the device
   * @param layout the channel, the same on all ranks
   * @param rank this rank in the channel
   * @param areas the ranks' areas, all zero
   * @param state this rank's counters, all zero
   */
  KernelChannel(
      CudaDevice device,
      HostKernels kernels,
      ChannelLayout layout,
      int rank,
      long[] areas,
      long state) {
    this.kernels = kernels;
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

  /** Launches what {@link #reduce} says. */
  void launchReduce(Kernel kernel, Launch launch, long stream) {
    kernels.launch(kernel, launch, stream, reduceParameters.address());
  }

  /** Launches what {@link #exchange} says. */
  void launchExchange(Kernel kernel, Launch launch, long stream) {
    kernels.launch(kernel, launch, stream, exchangeParameters.address());
  }

  /** Launches a barrier. */
  void launchBarrier(Kernel kernel, Launch launch, long timeoutNanos, long stream) {
    timeout.set(ValueLayout.JAVA_LONG, 0, timeoutNanos);
    kernels.launch(kernel, launch, stream, barrierParameters.address());
  }

  /** Frees what is this rank's alone; nothing may run on the channel. */
  @Override
  public void close() {
    control.close();
  }
}
