package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class TestTierTest {
  static List<int[]> worlds() {
    return List.of(
        new int[] {1, 2, 3, 4},
        new int[] {1, 2, 3},
        new int[] {3, 4},
        new int[] {1},
        new int[] {4},
        new int[] {64});
  }

  private static List<Method> contractTests() {
    return Arrays.stream(ProcessGroupContract.class.getMethods())
        .filter(method -> method.isAnnotationPresent(ContractTest.class))
        .toList();
  }

  @ParameterizedTest
  @MethodSource("worlds")
  void theFastTierLeavesNoContractTestOut(int[] worlds) {
    assertThat(contractTests()).hasSizeGreaterThan(100);
    for (Method method : contractTests()) {
      ContractTest test = method.getAnnotation(ContractTest.class);
      List<Integer> full = ContractExtension.sizes(test, worlds, false);
      List<Integer> fast = ContractExtension.sizes(test, worlds, true);
      assertThat(full).as("%s", method).containsAll(fast);
      assertThat(fast.isEmpty()).as("%s", method).isEqualTo(full.isEmpty());
      assertThat(fast).as("%s", method).hasSizeLessThanOrEqualTo(test.waits() ? 1 : 2);
    }
  }

  @Test
  void theFastTierTakesTwoAndThreeRanks() throws Exception {
    ContractTest values = test(AllReduceContract.class, "allReduceTakesAnySize");
    assertThat(ContractExtension.sizes(values, new int[] {4, 3, 2, 1}, true)).containsExactly(2, 3);
    assertThat(ContractExtension.sizes(values, new int[] {3, 4}, true)).containsExactly(3);
    assertThat(ContractExtension.sizes(values, new int[] {4, 8, 16}, true)).containsExactly(4, 8);
    assertThat(ContractExtension.sizes(values, new int[] {1, 2, 3, 4}, false))
        .containsExactly(1, 2, 3, 4);
    ContractTest waits = test(TimeoutContract.class, "allReduceFailsAtItsDeadline");
    assertThat(ContractExtension.sizes(waits, new int[] {1, 2, 3, 4}, true)).containsExactly(2);
    assertThat(ContractExtension.sizes(waits, new int[] {1, 2, 3, 4}, false))
        .containsExactly(2, 3, 4);
  }

  private static ContractTest test(Class<?> contract, String name) throws Exception {
    return contract.getMethod(name, ContractWorld.class).getAnnotation(ContractTest.class);
  }

  @Test
  void anUnknownTierIsRefused() {
    assertThat(TestTier.isFast("fast")).isTrue();
    assertThat(TestTier.isFast("full")).isFalse();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TestTier.isFast("slow"))
        .withMessage("tutti.tier is \"slow\", not fast or full");
  }
}
