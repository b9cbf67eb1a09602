package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceStream;
import java.util.Arrays;
import java.util.List;

/**
 * Forms the buckets, and after the first step once more, in the order in which gradients became
 * ready on rank 0 (c10d: {@code rebuild_buckets}).
 */
final class BucketRebuild {
  private final ProcessGroup group;
  private final ParameterList parameters;
  private final ReducerOptions options;
  private final Lanes lanes;
  private boolean due;

  BucketRebuild(ProcessGroup group, ParameterList parameters, ReducerOptions options, Lanes lanes) {
    this.group = group;
    this.parameters = parameters;
    this.options = options;
    this.lanes = lanes;
    this.due = options.rebuild();
  }

  /** Returns the buckets of the first step; all ranks must call this together. */
  BucketMemory first() {
    return allocate(plan(parameters.lastFirst()));
  }

  private List<List<Integer>> plan(List<Integer> order) {
    return BucketPlan.of(
        parameters.all(), order, options.firstBucketBytes(), options.bucketBytes());
  }

  private BucketMemory allocate(List<List<Integer>> plan) {
    return new BucketMemory(group, plan, parameters, options.allocator(), lanes);
  }

  /** Returns whether the step that ends is the first one, and the options allow a rebuild. */
  boolean isDue() {
    return due;
  }

  /**
   * Returns the buckets of all further steps, with the gradients that are in the old ones; the same
   * ones if nothing changes. All ranks must call this together.
   *
   * @param ownOrder the order in which gradients became ready on this rank
   */
  BucketMemory further(BucketMemory old, List<Integer> ownOrder) {
    due = false;
    int[] order = ownOrder.stream().mapToInt(Integer::intValue).toArray();
    group.broadcast(Tensor.wrap(order), 0);
    List<List<Integer>> plan = plan(Arrays.stream(order).boxed().toList());
    if (plan.equals(old.plan())) {
      return old;
    }
    BucketMemory formed = allocate(plan);
    lanes.afterCurrent();
    for (int i = 0; i < parameters.count(); i++) {
      DeviceStream before = formed.of(i).streams().use();
      try {
        options.allocator().copy(formed.gradient(i), old.gradient(i));
      } finally {
        MarkedStreams.leave(before);
      }
    }
    return formed;
  }
}
