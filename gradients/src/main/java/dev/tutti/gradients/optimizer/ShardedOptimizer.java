package dev.tutti.gradients.optimizer;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
 * pass. A rank holds the state of its part of the parameters, and two buckets of memory besides the
 * gradients. Only one thread at a time may call the methods; the reducer's own rules apply to its
 * methods.
 */
public final class ShardedOptimizer implements AutoCloseable {
  /*
   * A bucket of numel elements has one part of numel / ranks elements for each rank, in rank order,
   * and a remainder of fewer elements than ranks, which every rank updates alike. So there is no
   * padding, and nothing is sent twice. Parameters stay where they are: for each bucket, those of
   * this rank's part are copied to a stage, updated and gathered there, and copied back. There are
   * two stages, so that one bucket is gathered while the next one is updated.
   */
  private static final String STEP = "step";

  private final ProcessGroup group;
  private final ShardUpdate update;
  private final List<Tensor> parameters;
  private final GradientReducer reducer;
  private final List<BucketShard> shards = new ArrayList<>();
  private long step;

  /**
   * Creates an optimizer and its reducer, which throws everything that the constructor of {@link
   * GradientReducer} throws. All ranks of the group must call it.
   *
   * @param group the group of all ranks that train the model
   * @param parameters the parameters of the model: contiguous, on the host, of types that the
   *     update supports; the optimizer changes them in place
   * @param options the options of the reducer, without gradients in other memory, unused
   *     parameters, uneven inputs or a hook, which this optimizer does not support
   * @param update the update that a step makes
   * @throws IllegalArgumentException if the parameters or options are not supported
   */
  public ShardedOptimizer(
      ProcessGroup group, List<Tensor> parameters, ReducerOptions options, ShardUpdate update) {
    this.group = group;
    this.update = update;
    this.parameters = List.copyOf(parameters);
    requireFitting(this.parameters, options, update);
    reducer =
        new GradientReducer(
            group, parameters, options.withoutRebuild().withHook(ShardedOptimizer::reduceScatter));
    for (GradientBucket bucket : reducer.buckets()) {
      BucketShard shard = new BucketShard(bucket, group.rank(), group.size());
      shard.allocate(update);
      shards.add(shard);
    }
    BucketShard.assignStages(shards);
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
      if (!parameter.isContiguous()
          || !parameter.device().isCpu()
          || !update.supports(parameter.dtype())) {
        throw new IllegalArgumentException(
            "parameter %d must be contiguous, on the host and of a type that %s supports, not %s"
                .formatted(i, update.getClass().getSimpleName(), parameter.describe()));
      }
    }
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
   * Ends the backward pass, as {@link GradientReducer#await} does, and updates the parameters on
   * all ranks. Within {@link GradientReducer#noSync}, call {@code reducer().await()} instead.
   *
   * @throws dev.tutti.gradients.GradientException if a gradient is missing, or the step failed here
   *     or on another rank
   * @throws dev.tutti.CollectiveException if parameters could not be gathered; some of them may
   *     then be those of this step
   */
  public void step() {
    reducer.await();
    step++;
    BucketShard gathered = null;
    Work work = null;
    for (BucketShard shard : shards) {
      shard.update(update, step, parameters);
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
      shard.copyOut(parameters);
    }
  }

  /** Returns the number of steps taken so far, with those before {@link #setSteps}. */
  public long steps() {
    return step;
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
    step = steps;
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
   * without momentum nothing.
   */
  public List<Tensor> state() {
    return shards.stream().flatMap(shard -> shard.state().stream()).toList();
  }

  /**
   * Returns the state for checkpoints, by ranges of parameters, so that any number of ranks can
   * load it: for each parameter {@code w} of {@link AdamW} {@code exp_avg/w} and {@code
   * exp_avg_sq/w}, of {@link Sgd} with momentum {@code momentum_buffer/w}, and the counter {@code
   * step}.
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
        return Map.of(STEP, step);
      }

      @Override
      public void restored(Map<String, Long> counters) {
        Long saved = counters.get(STEP);
        if (saved == null) {
          throw new IllegalArgumentException("there is no counter '" + STEP + "' in " + counters);
        }
        setSteps(saved);
      }
    };
  }

  /** Closes the reducer; the parameters and the state remain. Further calls have no effect. */
  @Override
  public void close() {
    reducer.close();
  }
}
