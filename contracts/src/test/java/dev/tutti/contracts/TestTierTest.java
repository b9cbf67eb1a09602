package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.testing.Leaks;
import dev.tutti.testing.World;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class TestTierTest {
  /** Suites whose names yield different random choices. */
  private static final List<Class<?>> SUITES =
      Stream.of(ContractTest.class, GroupContract.class, World.class, Leaks.class, Layout.class)
          .<Class<?>>flatMap(
              suite -> Stream.of(suite, suite.arrayType(), suite.arrayType().arrayType()))
          .toList();

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
  void theFastTierTakesOneWorldSizeOfEachContractTest(int[] worlds) {
    assertThat(contractTests()).hasSizeGreaterThan(100);
    for (Method method : contractTests()) {
      ContractTest test = method.getAnnotation(ContractTest.class);
      List<Integer> full = ContractExtension.sizes(test, worlds);
      List<Integer> fast = ContractExtension.few(full, TestTierTest.class, method);
      assertThat(full).as("%s", method).containsAll(fast);
      assertThat(fast).as("%s", method).hasSize(full.isEmpty() ? 0 : 1);
    }
  }

  @Test
  void theFastTierTakesTwoRanksOrThree() throws Exception {
    Method values = AllReduceContract.class.getMethod("allReduceTakesAnySize", ContractWorld.class);
    assertThat(few(values, 4, 3, 2, 1)).containsOnly(2, 3);
    assertThat(few(values, 3, 4)).containsOnly(3);
    assertThat(few(values, 4, 8, 16)).containsOnly(4, 8, 16);
    ContractTest test = values.getAnnotation(ContractTest.class);
    assertThat(ContractExtension.sizes(test, new int[] {4, 3, 2, 1})).containsExactly(1, 2, 3, 4);
    Method waits =
        TimeoutContract.class.getMethod("allReduceFailsAtItsDeadline", ContractWorld.class);
    assertThat(few(waits, 1, 2)).containsOnly(2);
  }

  /** Returns the selection that suites get in the fast tier. */
  private static Set<Integer> few(Method method, int... worlds) {
    List<Integer> all = ContractExtension.sizes(method.getAnnotation(ContractTest.class), worlds);
    return SUITES.stream()
        .map(suite -> ContractExtension.few(all, suite, method).get(0))
        .collect(Collectors.toSet());
  }

  @Test
  void ofASampledSuiteTheFastTierRunsAboutAFifthAndOfEachOtherAll() {
    assertThat(contractTests())
        .filteredOn(method -> SampledExtension.draws(Drawn.class, method))
        .hasSizeBetween(contractTests().size() / 10, contractTests().size() / 3);
    assertThat(contractTests())
        .allMatch(method -> SampledExtension.draws(TestTierTest.class, method));
  }

  @Sampled
  private static final class Drawn {}

  @Test
  void ofASampledParameterizedTestTheFastTierRunsEachFifthInvocation() throws Exception {
    Method sampled = Invocations.class.getDeclaredMethod("sampled");
    assertThat(
            IntStream.rangeClosed(1, 11)
                .filter(i -> SampledExtension.drawsInvocation(sampled, id(i))))
        .containsExactly(1, 6, 11);
    assertThat(SampledExtension.drawsInvocation(sampled, "[class:C]/[test-template:sampled(int)]"))
        .isTrue();
    Method other = Invocations.class.getDeclaredMethod("other");
    assertThat(SampledExtension.drawsInvocation(other, id(2))).isTrue();
  }

  private static String id(int invocation) {
    return "[class:C]/[test-template:sampled(int)]/[test-template-invocation:#" + invocation + "]";
  }

  static final class Invocations {
    @Sampled
    void sampled() {}

    void other() {}
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
