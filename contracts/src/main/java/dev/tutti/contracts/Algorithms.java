package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Static methods that request algorithms. */
final class Algorithms {
  private Algorithms() {}

  /** Returns the algorithms by which a tensor can be reduced, and reduces it by each of them. */
  static List<String> usable(Member member, Tensor tensor) {
    List<String> found = new ArrayList<>();
    for (String algorithm : member.capabilities().algorithms()) {
      try {
        member
            .group()
            .allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT.withAlgorithm(algorithm))
            .await();
        found.add(algorithm);
      } catch (UnsupportedOperationException e) {
        assertThat(e).hasMessageContaining(algorithm);
      }
    }
    return found;
  }

  /**
   * Reduces by an algorithm, and checks the result and that this algorithm was the one used.
   *
   * @return false if the algorithm was refused, and the refusal changed nothing
   */
  static boolean isTaken(Member member, String algorithm, ReductionCase reduction) {
    TestTensor tensor = reduction.input(member);
    byte[] before = tensor.bits();
    CallOptions options = CallOptions.DEFAULT.withAlgorithm(algorithm);
    Map<String, Long> used = member.group().diagnostics().usageByPath();
    try {
      member.group().allReduce(tensor.view(), reduction.op(member.rank()), options).await();
    } catch (UnsupportedOperationException e) {
      assertThat(e).hasMessageContaining(algorithm).hasMessageContaining("rank ");
      assertThat(tensor.bits()).as("what %s refused", algorithm).isEqualTo(before);
      assertThat(member.group().diagnostics().usageByPath()).isEqualTo(used);
      assertThat(member.group().failure()).isEmpty();
      return false;
    }
    reduction.check("allReduce by " + algorithm, tensor);
    if (tensor.view().numel() > 0 && member.size() > 1) {
      assertThat(member.group().diagnostics().usageByPath().entrySet())
          .as("usage by path after %s, before it %s", algorithm, used)
          .anySatisfy(
              entry -> {
                assertThat(entry.getKey()).endsWith("/" + algorithm);
                assertThat(entry.getValue()).isEqualTo(used.getOrDefault(entry.getKey(), 0L) + 1);
              });
    }
    return true;
  }
}
