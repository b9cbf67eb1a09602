package dev.tutti.cuda.element;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.UpdateKernels;
import dev.tutti.spi.DeviceUpdates;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The steps of an optimizer on a CUDA device. */
public final class CudaUpdates implements DeviceUpdates {
  private final CudaDevice device;
  private final LaunchParameters squares = parameters(UpdateKernels.squares());
  private final LaunchParameters addSquares = parameters(UpdateKernels.addSquares());
  private final LaunchParameters prepare = parameters(UpdateKernels.prepare());
  private final LaunchParameters update = parameters(UpdateKernels.update());

  /** Creates the steps of one optimizer on a device. */
  public CudaUpdates(CudaDevice device) {
    this.device = device;
  }

  private static LaunchParameters parameters(Kernel kernel) {
    return new LaunchParameters(kernel.parameters().size());
  }

  private CudaStream keep(@Nullable Tensor... tensors) {
    CudaStream stream = device.currentStream();
    for (Tensor tensor : tensors) {
      if (tensor != null) {
        stream.keep(tensor);
      }
    }
    return stream;
  }

  private static void enqueue(
      CudaStream stream, Kernel kernel, long elements, LaunchParameters parameters) {
    ElementKernel.enqueue(stream, kernel, UpdateKernels.launch(kernel, elements), parameters);
  }

  private static int code(Tensor tensor) {
    int code = ElementKernels.code(tensor.dtype());
    if (code < 0 || tensor.dtype() == DType.FLOAT64 || !tensor.isContiguous()) {
      throw new IllegalArgumentException("no kernel updates by " + tensor.describe());
    }
    return code;
  }

  private static long address(List<Tensor> state, int index) {
    return index < state.size() ? state.get(index).segment().address() : 0;
  }

  @Override
  public int sums(long numel) {
    return UpdateKernels.launch(UpdateKernels.squares(), numel).grid();
  }

  @Override
  public void squares(Tensor gradients, Tensor sums) {
    squares.set(0, gradients.segment().address());
    squares.set(1, gradients.numel());
    squares.set(2, code(gradients));
    squares.set(3, sums.segment().address());
    enqueue(keep(gradients, sums), UpdateKernels.squares(), gradients.numel(), squares);
  }

  @Override
  public void addSquares(Tensor sums, Tensor control) {
    addSquares.set(0, sums.segment().address());
    addSquares.set(1, sums.numel());
    addSquares.set(2, control.segment().address());
    enqueue(keep(sums, control), UpdateKernels.addSquares(), sums.numel(), addSquares);
  }

  @Override
  public void prepare(Tensor control) {
    prepare.set(0, control.segment().address());
    enqueue(keep(control), UpdateKernels.prepare(), 1, prepare);
  }

  @Override
  public void update(
      Tensor parameters,
      @Nullable Tensor rounded,
      Tensor gradients,
      List<Tensor> state,
      Tensor control) {
    update.set(0, parameters.segment().address());
    update.set(1, rounded == null ? 0L : rounded.segment().address());
    update.set(2, gradients.segment().address());
    update.set(3, address(state, 0));
    update.set(4, address(state, 1));
    update.set(5, parameters.numel());
    update.set(6, code(gradients));
    update.set(7, rounded == null ? 0 : code(rounded));
    update.set(8, control.segment().address());
    CudaStream stream = keep(parameters, rounded, gradients, control);
    state.forEach(stream::keep);
    enqueue(stream, UpdateKernels.update(), parameters.numel(), update);
  }
}
