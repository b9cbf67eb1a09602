package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.gradients.RandomModel;
import dev.tutti.gradients.ReducerOptions;
import java.util.function.UnaryOperator;

/** Trains random models with parameters and gradients on devices. */
final class DeviceModels {
  private final CudaRanks ranks;
  private final UnaryOperator<ReducerOptions> options;

  /**
   * Trains on some ranks.
   *
   * @param options changes the options of reducers
   */
  DeviceModels(CudaRanks ranks, UnaryOperator<ReducerOptions> options) {
    this.ranks = ranks;
    this.options = options;
  }

  /** Trains the model of a seed, on 1 to 4 ranks. */
  void train(long seed, int largest) throws Exception {
    RandomModel model = new RandomModel(seed, largest);
    System.out.println(model);
    ranks.run(
        model.ranks(),
        (group, device) -> model.run(group, new Memory(device, device.currentStream())));
  }

  /** The memory of a device; all threads of a rank use one stream. */
  private final class Memory implements RandomModel.Memory {
    private final CudaDevice device;
    private final CudaStream stream;

    private Memory(CudaDevice device, CudaStream stream) {
      this.device = device;
      this.stream = stream;
    }

    @Override
    public Tensor allocate(DType type, long... shape) {
      return device.tensors().copyOf(Tensor.allocate(type, shape));
    }

    /** Returns the memory of a tensor whose dimensions may have been exchanged. */
    private static Tensor inOrder(Tensor tensor) {
      return tensor.isContiguous() ? tensor : tensor.transpose(0, 1);
    }

    @Override
    public double[] read(Tensor tensor) {
      Tensor inOrder = inOrder(tensor);
      Tensor host = device.tensors().toHost(inOrder);
      return (inOrder == tensor ? host : host.transpose(0, 1)).toDoubleArray();
    }

    @Override
    public void write(Tensor tensor, double[] values) {
      Tensor inOrder = inOrder(tensor);
      Tensor host = Tensor.allocate(tensor.dtype(), inOrder.shape());
      RandomModel.Memory.HOST.write(inOrder == tensor ? host : host.transpose(0, 1), values);
      device.tensors().copyFromHost(inOrder, host);
    }

    @Override
    public void run(Runnable work) {
      try (CudaStream.Scope _ = stream.use()) {
        work.run();
      }
    }

    @Override
    public ReducerOptions options(ReducerOptions given) {
      return options.apply(given);
    }
  }
}
