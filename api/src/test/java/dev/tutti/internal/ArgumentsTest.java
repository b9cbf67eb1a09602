package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.AllToAllOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what is said of bad arguments. */
@Timeout(60)
class ArgumentsTest {
  private final ProcessGroup group = new ScriptedProvider().join(2);

  @AfterEach
  void close() {
    group.close();
  }

  private static void refused(String text, Runnable call) {
    assertThatIllegalArgumentException().isThrownBy(call::run).withMessage(text);
  }

  @Test
  void splitsThatOverflow() {
    refused(
        "allToAllSingle on rank 0/2 of group 0: inputSplits must not add up to more than 2^63-1:"
            + " [1, 9223372036854775807]",
        () ->
            group.allToAllSingle(
                Tensor.of(1, 2),
                Tensor.of(3, 4),
                List.of(),
                List.of(1L, Long.MAX_VALUE),
                AllToAllOptions.DEFAULT));
  }

  @Test
  void symmetricMemoryBeyondAllBounds() {
    refused(
        "allocateSymmetric on rank 0/2 of group 0: byteSize must be in 1..2305843009213693952, but"
            + " is 9223372036854775807",
        () -> group.allocateSymmetric(Long.MAX_VALUE));
  }

  @Test
  void subgroupsThatCannotBe() {
    refused(
        "subgroup on rank 0/2 of group 0: each of ranks must be a rank in 0..1, not 5",
        () -> group.subgroup(List.of(5)));
    refused(
        "subgroup on rank 0/2 of group 0: ranks must be some ranks without repeats, not [0, 0]",
        () -> group.subgroup(List.of(0, 0)));
    refused(
        "subgroup on rank 0/2 of group 0: ranks must be some ranks without repeats, not []",
        () -> group.subgroup(List.of()));
  }
}
