package dev.tutti.gloo.shm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import org.jspecify.annotations.Nullable;

/** The rule by which all ranks choose the algorithm of an all-reduce in shared memory. */
final class AllReduceRule {
  private static final RequestedAlgorithm[] SMALL = {RequestedAlgorithm.ONE_SHOT};
  private static final RequestedAlgorithm[] LARGE = {
    RequestedAlgorithm.SYMMETRIC, RequestedAlgorithm.DIRECT, RequestedAlgorithm.STAGED
  };

  private AllReduceRule() {}

  /** Returns whether a tensor of so many bytes is reduced in one step. */
  static boolean isSmall(double bytes) {
    return bytes <= ShmLayout.SLOT_BYTES;
  }

  /**
   * Returns the algorithms to try if none was requested, the fastest first. Each but the last one
   * may find that it does not serve, because of where the ranks' tensors are.
   */
  static RequestedAlgorithm[] candidates(long bytes) {
    return isSmall((double) bytes) ? SMALL : LARGE;
  }

  /** Returns why a requested algorithm cannot reduce a tensor; null if it may. */
  static @Nullable String reason(RequestedAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    boolean scales = reduceOp.kind() == ReduceOp.Kind.PREMUL_SUM;
    return switch (algorithm) {
      case STAGED -> null;
      case ONE_SHOT ->
          isSmall((double) tensor.byteSize())
              ? null
              : "one-shot in shared memory takes at most "
                  + ShmLayout.SLOT_BYTES
                  + " bytes, not "
                  + tensor.byteSize();
      case DIRECT, SYMMETRIC ->
          scales
              ? algorithm.label() + " may be refused only after PREMUL_SUM has scaled the tensor"
              : null;
      default -> "the algorithms in shared memory are one-shot, staged, direct and symmetric";
    };
  }

  /** Returns why a requested algorithm did not serve. */
  static String refusal(RequestedAlgorithm algorithm) {
    return algorithm == RequestedAlgorithm.SYMMETRIC
        ? "symmetric needs tensors at the same offset in one symmetric memory on all ranks"
        : "direct needs tensors of at least "
            + HostReads.LEAST_MAPPED
            + " bytes from Tensor.allocate, and ranks that can map each other's tensors";
  }
}
