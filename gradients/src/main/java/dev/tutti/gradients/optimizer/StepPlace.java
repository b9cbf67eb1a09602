package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.DeviceUpdates;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where the steps of an optimizer are computed. The numbers that all shards share are in a control,
 * whose elements are those of {@link DeviceUpdates}.
 */
interface StepPlace {
  /** Returns the values of a new control. */
  static double[] control(OptimizerOptions options) {
    double[] control = new double[DeviceUpdates.CONTROL_SIZE];
    control[DeviceUpdates.SCALE] = options.scale();
    control[DeviceUpdates.MAX_NORM] = options.maxNorm();
    control[DeviceUpdates.GROWTH] = options.growth();
    control[DeviceUpdates.BACKOFF] = options.backoff();
    control[DeviceUpdates.INTERVAL] = options.interval();
    control[DeviceUpdates.CHECKS] = options.checks() ? 1 : 0;
    return control;
  }

  /** Returns the control. */
  Tensor control();

  /** Reads an element of the control, after all steps so far. */
  double read(int index);

  /** Writes an element of the control, for all later steps. */
  void write(int index, double value);

  /** Writes the learning rate if it has changed. */
  void refresh();

  /** Allocates what this rank has of a bucket's elements: a stage, or a shard's master copy. */
  Tensor allocate(DType dtype, long numel);

  /** Allocates the state of a shard. */
  List<Tensor> state(Tensor parameters);

  /**
   * Begins a step.
   *
   * @param gradients the gradients that count, which no other rank has
   */
  void begin(List<Tensor> gradients, ProcessGroup group);

  /**
   * Updates a shard.
   *
   * @param parameters the parameters, in the stage
   * @param master the float32 ones, if those are rounded copies; otherwise null
   */
  void update(Tensor parameters, @Nullable Tensor master, Tensor gradients, List<Tensor> state);

  /** Copies elements, which it may convert. */
  void copy(Tensor target, Tensor source);

  /** Starts to gather; returns null if later work of this place finds the result. */
  @Nullable Work gather(ProcessGroup group, Tensor all, Tensor part);
}
