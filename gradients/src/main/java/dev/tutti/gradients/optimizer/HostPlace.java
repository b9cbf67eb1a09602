package dev.tutti.gradients.optimizer;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.DeviceUpdates;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Steps on the host, by the methods of a {@link ShardUpdate}. */
final class HostPlace implements StepPlace {
  private static final double SMALL = 1e-6;

  private final ShardUpdate update;
  private final Tensor control;
  private final FloatBlock block = new FloatBlock();

  HostPlace(ShardUpdate update, OptimizerOptions options) {
    this.update = update;
    this.control = Tensor.of(StepPlace.control(options));
  }

  @Override
  public Tensor control() {
    return control;
  }

  @Override
  public double read(int index) {
    return control.getDouble(index);
  }

  @Override
  public void write(int index, double value) {
    control.setDouble(index, value);
  }

  @Override
  public void refresh() {
    // The update reads its rate itself.
  }

  @Override
  public Tensor allocate(DType dtype, long numel) {
    return Tensor.allocate(dtype, numel);
  }

  @Override
  public List<Tensor> state(Tensor parameters) {
    return update.allocate(parameters);
  }

  @Override
  public void begin(List<Tensor> gradients, ProcessGroup group) {
    boolean isBad = false;
    double factor = 1 / read(DeviceUpdates.SCALE);
    if (read(DeviceUpdates.CHECKS) != 0) {
      write(DeviceUpdates.SQUARES, gradients.stream().mapToDouble(HostPlace::squares).sum());
      group.allReduce(control.narrow(0, DeviceUpdates.SQUARES, 1));
      double squares = read(DeviceUpdates.SQUARES);
      isBad = !(squares <= Double.MAX_VALUE);
      write(DeviceUpdates.NORM, Math.sqrt(squares) * factor);
      double most = read(DeviceUpdates.MAX_NORM);
      if (most > 0 && !isBad) {
        factor *= Math.min(1, most / (read(DeviceUpdates.NORM) + SMALL));
      }
    }
    if (read(DeviceUpdates.INTERVAL) > 0) {
      adaptScale(isBad);
    }
    write(DeviceUpdates.SKIPS, isBad ? 1 : 0);
    write(DeviceUpdates.FACTOR, factor);
    if (!isBad) {
      write(DeviceUpdates.STEPS, read(DeviceUpdates.STEPS) + 1);
    }
  }

  private void adaptScale(boolean isBad) {
    double scale = read(DeviceUpdates.SCALE);
    double good = isBad ? 0 : read(DeviceUpdates.GOOD_STEPS) + 1;
    if (isBad) {
      write(DeviceUpdates.SCALE, scale * read(DeviceUpdates.BACKOFF));
    } else if (good >= read(DeviceUpdates.INTERVAL)) {
      double grown = scale * read(DeviceUpdates.GROWTH);
      write(DeviceUpdates.SCALE, grown <= Float.MAX_VALUE ? grown : scale);
      good = 0;
    }
    write(DeviceUpdates.GOOD_STEPS, good);
  }

  private static double squares(Tensor gradients) {
    double sum = 0;
    for (long i = 0; i < gradients.numel(); i++) {
      double value = gradients.getDouble(i);
      sum += value * value;
    }
    return sum;
  }

  @Override
  public void update(
      Tensor parameters, @Nullable Tensor master, Tensor gradients, List<Tensor> state) {
    if (read(DeviceUpdates.SKIPS) != 0) {
      return;
    }
    double factor = read(DeviceUpdates.FACTOR);
    if (factor != 1) {
      multiply(gradients, factor);
    }
    update.update((long) read(DeviceUpdates.STEPS), parameters, gradients, state);
  }

  private void multiply(Tensor gradients, double factor) {
    if (gradients.dtype() != DType.FLOAT32) {
      for (long i = 0; i < gradients.numel(); i++) {
        gradients.setDouble(i, gradients.getDouble(i) * factor);
      }
      return;
    }
    float by = (float) factor;
    for (long start = 0; start < gradients.numel(); start += FloatBlock.SIZE) {
      block.load(gradients, start);
      for (int i = 0; i < FloatBlock.SIZE; i++) {
        block.elements[i] *= by;
      }
      block.store(gradients, start);
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    target.segment().copyFrom(source.segment());
  }

  @Override
  public Work gather(ProcessGroup group, Tensor all, Tensor part) {
    return group.allGatherInto(all, part, CallOptions.ASYNC);
  }
}
