package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.DeviceTensors;
import dev.tutti.spi.DeviceUpdates;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Steps on a device, by its kernels, in the calling thread's current stream. */
final class DevicePlace implements StepPlace {
  private final Device device;
  private final DeviceTensors tensors;
  private final DeviceUpdates kernels;
  private final ShardUpdate update;
  private final int states;
  private final boolean checks;
  private final Tensor control;
  private final Tensor oneOnHost = Tensor.allocate(DType.FLOAT64, 1);
  private double written;
  private @Nullable Tensor sums;

  DevicePlace(
      Device device,
      DeviceTensors tensors,
      DeviceUpdates kernels,
      ShardUpdate update,
      FusedUpdate fused,
      OptimizerOptions options) {
    this.device = device;
    this.tensors = tensors;
    this.kernels = kernels;
    this.update = update;
    this.states = fused.states();
    this.checks = options.checks();
    double[] values = StepPlace.control(options);
    written = fused.rate();
    values[DeviceUpdates.RATE] = written;
    values[DeviceUpdates.IS_SGD] = fused.isSgd() ? 1 : 0;
    values[DeviceUpdates.SETTINGS] = fused.first();
    values[DeviceUpdates.SETTINGS + 1] = fused.second();
    values[DeviceUpdates.SETTINGS + 2] = fused.third();
    values[DeviceUpdates.SETTINGS + 3] = fused.weightDecay();
    control = allocate(DType.FLOAT64, values.length);
    tensors.copyFromHost(control, Tensor.of(values));
  }

  @Override
  public Tensor control() {
    return control;
  }

  @Override
  public double read(int index) {
    tensors.copyToHost(oneOnHost, control.narrow(0, index, 1));
    return oneOnHost.getDouble(0);
  }

  @Override
  public void write(int index, double value) {
    oneOnHost.setDouble(0, value);
    tensors.copyFromHost(control.narrow(0, index, 1), oneOnHost);
  }

  @Override
  public void refresh() {
    double rate = update.fused().orElseThrow().rate();
    if (rate != written) {
      write(DeviceUpdates.RATE, rate);
      written = rate;
    }
  }

  @Override
  public Tensor allocate(DType dtype, long numel) {
    return tensors.allocate(Arena.ofAuto(), device, dtype, numel);
  }

  @Override
  public List<Tensor> state(Tensor parameters) {
    List<Tensor> state = new ArrayList<>();
    for (int i = 0; i < states; i++) {
      Tensor each = allocate(DType.FLOAT32, parameters.numel());
      tensors.zero(each);
      state.add(each);
    }
    return state;
  }

  @Override
  public void begin(List<Tensor> gradients, ProcessGroup group) {
    if (!tensors.currentStream(device).isCapturing()) {
      refresh();
    }
    if (checks) {
      Tensor all = sums(gradients);
      long at = 0;
      for (Tensor each : gradients) {
        int count = kernels.sums(each.numel());
        kernels.squares(each, all.narrow(0, at, count));
        at += count;
      }
      kernels.addSquares(all, control);
      group.allReduce(control.narrow(0, DeviceUpdates.SQUARES, 1));
    }
    kernels.prepare(control);
  }

  private Tensor sums(List<Tensor> gradients) {
    Tensor known = sums;
    if (known == null) {
      int count = gradients.stream().mapToInt(each -> kernels.sums(each.numel())).sum();
      known = allocate(DType.FLOAT64, count);
      tensors.zero(known);
      sums = known;
    }
    return known;
  }

  @Override
  public void update(
      Tensor parameters, @Nullable Tensor master, Tensor gradients, List<Tensor> state) {
    if (master == null) {
      kernels.update(parameters, null, gradients, state, control);
    } else {
      kernels.update(master, parameters, gradients, state, control);
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    tensors.copy(target, source);
  }

  @Override
  public @Nullable Work gather(ProcessGroup group, Tensor all, Tensor part) {
    group.allGatherInto(all, part);
    return null;
  }
}
