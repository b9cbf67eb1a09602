package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.spi.DeviceTensors;
import dev.tutti.spi.DeviceUpdates;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * An optimizer whose state is divided among the ranks (ZeRO stage 1; c10d: {@code
 * ZeroRedundancyOptimizer}). Each rank has an equal part of each bucket of gradients: it gets the
 * mean of the gradients of that part only, updates the parameters of that part, and sends them to
 * all ranks.
 *
 * {@snippet file="GradientSnippetsTest.java" region="optimizer"}
 *
 * <p>A step changes a parameter exactly, bit for bit, as the same {@link ShardUpdate} would on
 * whole parameters with gradients added in the same order. Between threads and in shared memory, an
 * all-reduce also adds in that order; over sockets, with three or more ranks, it adds in another
 * one.
 *
 * <p>A step moves as many bytes as an all-reduce of the gradients, half of them during the backward
 * pass. A rank holds the state of its part of the parameters, and besides the gradients two buckets
 * of memory, or all of them if parameters are flat. Only one thread at a time may call the methods;
 * the reducer's own rules apply to its methods.
 */
public final class ShardedOptimizer implements AutoCloseable {
  /*
   * A bucket of numel elements has one part of numel / ranks elements for each rank, in rank order,
   * and a remainder of fewer elements than ranks, which every rank updates alike. So there is no
   * padding, and nothing is sent twice. Parameters stay where they are: for each bucket, those of
   * this rank's part are copied to a stage, updated and gathered there, and copied back. There are
   * two stages, so that one bucket is gathered while the next one is updated. Flat parameters need
   * no copies, as each bucket has a stage of its own, and they are views of it.
   *
   * On a device, all of this is work in the current stream, and the numbers that a step depends on
   * are in device memory, so that the host waits for nothing. Parameters that are not float32 have
   * a float32 master copy in the state, of which the stage gets the rounded values.
   */
  private static final String STEP = "step";

  /** The loss scale, as the bits of a float64. */
  private static final String SCALE = "loss_scale_float64_bits";

  private static final String GOOD_STEPS = "loss_scale_good_steps";

  private final ProcessGroup group;
  private final ShardUpdate update;
  private final List<Tensor> parameters;
  private final GradientReducer reducer;
  private final StepPlace place;
  private final List<BucketShard> shards = new ArrayList<>();
  private final List<Tensor> counted = new ArrayList<>();

  /**
   * Creates an optimizer that neither clips gradients nor scales the loss, as {@link
   * #ShardedOptimizer(ProcessGroup, List, ReducerOptions, ShardUpdate, OptimizerOptions)} does.
   *
   * @param group the group of all ranks that train the model
   * @param parameters the parameters of the model
   * @param options the options of the reducer
   * @param update the update that a step makes
   */
  public ShardedOptimizer(
      ProcessGroup group, List<Tensor> parameters, ReducerOptions options, ShardUpdate update) {
    this(group, parameters, options, update, OptimizerOptions.DEFAULT);
  }

  /**
   * Creates an optimizer and its reducer, which throws everything that the constructor of {@link
   * GradientReducer} throws. All ranks of the group must call it.
   *
   * @param group the group of all ranks that train the model
   * @param parameters the parameters of the model: contiguous, all on one device or on the host, of
   *     types that the update supports there; the optimizer changes them in place, unless they are
   *     to be flat
   * @param options the options of the reducer, without gradients in other memory, unused
   *     parameters, uneven inputs or a hook, which this optimizer does not support
   * @param update the update that a step makes
   * @param more the options of the optimizer, the same on all ranks
   * @throws IllegalArgumentException if the parameters or options are not supported
   */
  public ShardedOptimizer(
      ProcessGroup group,
      List<Tensor> parameters,
      ReducerOptions options,
      ShardUpdate update,
      OptimizerOptions more) {
    this.group = group;
    this.update = update;
    List<Tensor> given = List.copyOf(parameters);
    requireFitting(given, options, update);
    reducer =
        new GradientReducer(
            group, parameters, options.withoutRebuild().withHook(ShardedOptimizer::reduceScatter));
    try {
      List<GradientBucket> buckets = reducer.buckets();
      place = place(buckets, update, more);
      boolean isFlat = more.isFlat();
      List<Tensor> stages =
          isFlat ? BucketShard.flat(buckets, place) : BucketShard.stages(buckets, place);
      this.parameters = isFlat ? BucketShard.moved(given, buckets, stages, place) : given;
      for (int i = 0; i < buckets.size(); i++) {
        BucketShard shard =
            new BucketShard(buckets.get(i), place, group, stages.get(i), isFlat, this.parameters);
        shard.addGradients(counted);
        shards.add(shard);
      }
    } catch (RuntimeException | Error e) {
      reducer.close();
      throw e;
    }
  }

  private static StepPlace place(
      List<GradientBucket> buckets, ShardUpdate update, OptimizerOptions options) {
    if (buckets.isEmpty()) {
      return new HostPlace(update, options);
    }
    GradientBucket first = buckets.getFirst();
    Device device = first.tensor().device();
    if (device.isCpu()) {
      return new HostPlace(update, options);
    }
    DeviceTensors tensors = first.allocator().streams(device).orElse(null);
    DeviceUpdates kernels = tensors == null ? null : tensors.updates(device).orElse(null);
    if (tensors == null || kernels == null) {
      throw new IllegalArgumentException(
          "no optimizer on %s: the reducer's allocator has no kernels for its steps there"
              .formatted(device));
    }
    return new DevicePlace(device, tensors, kernels, update, update.fused().orElseThrow(), options);
  }

  private static void requireFitting(
      List<Tensor> parameters, ReducerOptions options, ShardUpdate update) {
    if (!options.isPlain()) {
      throw new IllegalArgumentException(
          "a sharded optimizer does not support gradients elsewhere, unused parameters, uneven"
              + " inputs or a hook, but the options are "
              + options);
    }
    for (int i = 0; i < parameters.size(); i++) {
      Tensor parameter = parameters.get(i);
      Device device = parameter.device();
      if (!parameter.isContiguous()
          || !device.equals(parameters.getFirst().device())
          || !supports(update, parameter.dtype(), device)) {
        throw new IllegalArgumentException(
            "parameter %d must be contiguous, where parameter 0 is, and of a type that %s supports"
                    .formatted(i, update.getClass().getSimpleName())
                + " there, not "
                + parameter.describe());
      }
    }
  }

  private static boolean supports(ShardUpdate update, DType dtype, Device device) {
    return device.isCpu()
        ? update.supports(dtype)
        : update.fused().isPresent() && FusedUpdate.supports(dtype);
  }

  private static void reduceScatter(GradientBucket bucket, ProcessGroup group) {
    long part = bucket.tensor().numel() / group.size();
    long rest = bucket.tensor().numel() - part * group.size();
    if (part > 0) {
      Tensor parts = bucket.tensor().narrow(0, 0, part * group.size());
      group.reduceScatterInto(parts.narrow(0, group.rank() * part, part), parts, bucket.mean());
    }
    if (rest > 0) {
      group.allReduce(bucket.tensor().narrow(0, part * group.size(), rest), bucket.mean());
    }
  }

  /**
   * Returns the reducer, to which the backward pass hands its gradients. After a step, only the
   * gradients of this rank's parts are means.
   */
  public GradientReducer reducer() {
    return reducer;
  }

  /**
   * Returns the parameters that steps change, in the order given to the constructor: those that it
   * was given, or, if they are flat, tensors of the same shapes in memory of the optimizer, which
   * lives as long as any of them can be reached.
   */
  public List<Tensor> parameters() {
    return parameters;
  }

  /**
   * Ends the backward pass, as {@link GradientReducer#await} does, and updates the parameters on
   * all ranks. Within {@link GradientReducer#noSync}, call {@code reducer().await()} instead. On a
   * device, later work in the current stream finds the parameters, and the host waits for nothing.
   *
   * @throws dev.tutti.gradients.GradientException if a gradient is missing, or the step failed here
   *     or on another rank
   * @throws dev.tutti.CollectiveException if parameters could not be gathered; some of them may
   *     then be those of this step
   */
  public void step() {
    reducer.await();
    place.begin(counted, group);
    BucketShard gathered = null;
    Work work = null;
    for (BucketShard shard : shards) {
      shard.update();
      Work next = shard.gather(group);
      finish(gathered, work);
      gathered = shard;
      work = next;
    }
    finish(gathered, work);
  }

  private void finish(@Nullable BucketShard shard, @Nullable Work work) {
    if (work != null) {
      work.await();
    }
    if (shard != null) {
      shard.copyOut();
    }
  }

  /**
   * Returns the number of steps taken so far, with those before {@link #setSteps}, but without
   * those that changed nothing. Waits for the device.
   */
  public long steps() {
    return (long) place.read(DeviceUpdates.STEPS);
  }

  /**
   * Returns the norm of all gradients of the last step, without the loss scale, before they were
   * clipped; 0 without clipping and loss scale. Waits for the device.
   */
  public double gradientNorm() {
    return place.read(DeviceUpdates.NORM);
  }

  /**
   * Returns the factor by which the program must multiply the loss of the next step: one float64
   * element where the parameters are, which each step changes; 1 without a loss scale.
   */
  public Tensor lossScale() {
    return place.control().narrow(0, DeviceUpdates.SCALE, 1);
  }

  /**
   * Writes the learning rate to the device, for replays of a captured step. A step that is not
   * captured does so itself.
   */
  public void refresh() {
    place.refresh();
  }

  /**
   * Sets the number of steps taken so far, for training that continues with saved parameters and a
   * saved {@link #state}. An update may depend on it, as AdamW's bias correction does.
   *
   * @param steps the number, the same on all ranks
   * @throws IllegalArgumentException if it is negative
   */
  public void setSteps(long steps) {
    if (steps < 0) {
      throw new IllegalArgumentException("steps must be at least 0, not " + steps);
    }
    place.write(DeviceUpdates.STEPS, (double) steps);
  }

  /**
   * Returns the state of this rank's elements: the tensors that the updates change, into which a
   * saved state can be copied.
   *
   * <p>The list has the buckets in the order of {@code reducer().buckets()}, which is the same for
   * the same sizes and types of parameters, options and number of ranks. A bucket's elements are
   * those of its {@link GradientBucket#parameters}, one after the other, in row-major order. With
   * {@code part = numel / ranks}, rank {@code r} has the {@code part} elements from {@code r *
   * part} on, and every rank has the remaining {@code numel % ranks} elements at the end. The list
   * holds what {@link ShardUpdate#allocate} returned for the part, then what it returned for the
   * remainder, also if that has no elements: for {@link AdamW} the means and the means of squares
   * of the part, then those of the remainder; for {@link Sgd} with momentum one velocity each, and
   * without momentum nothing. Parameters on a device that are not float32 add a float32 master copy
   * to either.
   */
  public List<Tensor> state() {
    return shards.stream().flatMap(shard -> shard.state().stream()).toList();
  }

  /**
   * Returns the state for checkpoints, by ranges of parameters, so that any number of ranks can
   * load it: for each parameter {@code w} of {@link AdamW} {@code exp_avg/w} and {@code
   * exp_avg_sq/w}, of {@link Sgd} with momentum {@code momentum_buffer/w}, and the counter {@code
   * step}. Master copies are named {@code master/w}. A loss scale is in two more counters. An
   * optimizer without one ignores them, and without them an optimizer keeps the scale that it has.
   *
   * @param names a name for each parameter, in the order given to the constructor
   * @throws IllegalArgumentException if names are missing or occur twice
   */
  public ShardedState state(List<String> names) {
    if (names.size() != parameters.size()) {
      throw new IllegalArgumentException(
          "there are %d names for %d parameters".formatted(names.size(), parameters.size()));
    }
    List<String> copy = List.copyOf(names);
    if (Set.copyOf(names).size() < names.size()) {
      throw new IllegalArgumentException("a name occurs twice in " + names);
    }
    return new ShardedState() {
      @Override
      public List<StatePart> parts() {
        List<StatePart> parts = new ArrayList<>();
        shards.forEach(shard -> shard.addParts(update.stateNames(), copy, parameters, parts));
        return parts;
      }

      @Override
      public Map<String, Long> counters() {
        Map<String, Long> counters = new TreeMap<>();
        counters.put(STEP, steps());
        if (adaptsScale()) {
          counters.put(SCALE, Double.doubleToRawLongBits(place.read(DeviceUpdates.SCALE)));
          counters.put(GOOD_STEPS, (long) place.read(DeviceUpdates.GOOD_STEPS));
        }
        return counters;
      }

      @Override
      public void restored(Map<String, Long> counters) {
        Long saved = counters.get(STEP);
        if (saved == null) {
          throw new IllegalArgumentException("there is no counter '" + STEP + "' in " + counters);
        }
        setSteps(saved);
        Long scale = counters.get(SCALE);
        Long goodSteps = counters.get(GOOD_STEPS);
        if (adaptsScale() && scale != null && goodSteps != null) {
          place.write(DeviceUpdates.SCALE, Double.longBitsToDouble(scale));
          place.write(DeviceUpdates.GOOD_STEPS, (double) goodSteps);
        }
      }
    };
  }

  private boolean adaptsScale() {
    return place.read(DeviceUpdates.INTERVAL) > 0;
  }

  /** Closes the reducer; the parameters and the state remain. Further calls have no effect. */
  @Override
  public void close() {
    reducer.close();
  }
}
