package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reduces a bucket by the hook, and copies the result to the gradients that callers read. */
final class BucketReducer {
  private final ProcessGroup group;
  private final ParameterList parameters;
  private final ReducerOptions options;
  private final UsedParameters used;
  private final StepClock clock;
  private final StepFailure failure;
  private final @Nullable List<Tensor> copied;

  BucketReducer(
      ProcessGroup group,
      ParameterList parameters,
      ReducerOptions options,
      UsedParameters used,
      StepClock clock,
      StepFailure failure) {
    this.group = group;
    this.parameters = parameters;
    this.options = options;
    this.used = used;
    this.clock = clock;
    this.failure = failure;
    this.copied = options.gradients();
  }

  /**
   * Reduces a bucket in the current stream.
   *
   * @param hasInputs whether this rank has inputs in the step, and so reads the result
   */
  void reduce(Bucket bucket, long step, boolean hasInputs) {
    long before = System.nanoTime();
    try {
      options.hook().reduce(bucket, group);
    } catch (RuntimeException | Error e) {
      int only = bucket.parameters().size() == 1 ? bucket.parameters().getFirst() : -1;
      throw failure.fail(
          "step %d: the gradients of %s were not reduced: %s"
              .formatted(step, parameters.describe(bucket.parameters()), e),
          only,
          e);
    }
    if (!hasInputs) {
      return;
    }
    clock.add(System.nanoTime() - before, bucket.tensor().byteSize());
    if (!used.isExchanged()) {
      copyOut(bucket);
    }
  }

  /** Copies the gradients of the parameters that any rank used, in the current stream. */
  void copyOut(Bucket bucket) {
    if (copied == null) {
      return;
    }
    for (int i = 0; i < bucket.parameters().size(); i++) {
      int parameter = bucket.parameters().get(i);
      if (used.isUsed(parameter)) {
        options.allocator().copy(copied.get(parameter), bucket.gradients().get(i));
      }
    }
  }
}
