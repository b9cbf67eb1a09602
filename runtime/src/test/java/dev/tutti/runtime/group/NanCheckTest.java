package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that an operation fails on the rank whose input contains a NaN, if the settings enable the
 * check.
 */
@Timeout(300)
class NanCheckTest {
  private final AtomicInteger calls = new AtomicInteger();

  private ScriptedProvider counting() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce = (op, tensor) -> calls.incrementAndGet();
    return provider;
  }

  @ParameterizedTest
  @ValueSource(strings = {"TUTTI_NAN_CHECK", "TORCH_NCCL_NAN_CHECK"})
  void theIndexAndTheRankAreNamed(String setting) {
    try (ProcessGroup group = counting().joinAs(1, 2, setting, "1")) {
      group.allReduce(Tensor.of(1f, 2f));
      group.broadcast(Tensor.of(Float.NaN), 0);
      assertThat(calls).hasValue(2);
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f, 2f, Float.NaN)))
          .isInstanceOfSatisfying(
              CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(1))
          .hasMessageContaining("the input of rank 1 has a NaN at index 2 [rank 1/2, group ")
          .message()
          .containsOnlyOnce("[");
      assertThat(calls).hasValue(2);
      assertThat(group.failure()).isPresent();
    }
  }

  @Test
  void aMessageIsCheckedToo() {
    try (ProcessGroup group = counting().join(2, "TUTTI_NAN_CHECK", "1")) {
      assertThatThrownBy(() -> group.send(Tensor.of(Double.NaN), 1))
          .hasMessageContaining("has a NaN at index 0");
    }
  }

  @Test
  void nothingIsCheckedOtherwise() {
    try (ProcessGroup group = counting().alone()) {
      group.allReduce(Tensor.of(Float.NaN));
      assertThat(calls).hasValue(1);
    }
  }
}
