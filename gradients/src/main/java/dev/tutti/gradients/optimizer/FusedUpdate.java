package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import java.util.Set;

/**
 * An update for which devices have kernels.
 *
 * @param isSgd whether it is gradient descent with momentum; otherwise AdamW
 * @param rate the learning rate
 * @param first AdamW's beta 1, or the momentum
 * @param second AdamW's beta 2, or the dampening
 * @param third AdamW's epsilon, or 1 for Nesterov's variant and 0 without
 * @param weightDecay the weight decay
 */
public record FusedUpdate(
    boolean isSgd, double rate, double first, double second, double third, double weightDecay) {
  private static final Set<DType> TYPES = Set.of(DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16);

  /** Returns whether the kernels update parameters of a type. */
  static boolean supports(DType dtype) {
    return TYPES.contains(dtype);
  }

  /** Returns how many tensors of state the update has, each of the size of the parameters. */
  int states() {
    return isSgd ? (first == 0 ? 0 : 1) : 2;
  }
}
