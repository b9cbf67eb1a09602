package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import dev.tutti.spi.PlanRequest;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CudaPlansTest {
  private static final long MIB = 1 << 20;

  private static Optional<OperationPlan> plan(OpType type, long bytes, int hosts, int ranks) {
    return CudaPlans.plan(
        new PlanRequest(type, bytes, hosts, ranks, 64, Settings.ofEnvironment(Map.of())));
  }

  private static void assertPlan(long bytes, int ranks, String path, Step step) {
    OperationPlan plan = plan(OpType.ALL_REDUCE, bytes, 1, ranks).orElseThrow();
    assertThat(plan.path()).isEqualTo(path);
    assertThat(plan.steps()).containsExactly(step);
  }

  @Test
  void theSizeDecidesHowOftenAndHowMuchIsSent() {
    assertPlan(1024, 4, "cuda/one-shot", Step.device(1, 3 * 1024));
    assertPlan(2 * MIB, 2, "cuda/one-shot", Step.device(1, 2.0 * MIB));
    assertPlan(2 * MIB, 4, "cuda/two-shot", Step.device(2, 3.0 * MIB));
    assertPlan(64 * MIB, 4, "cuda/chunks", Step.device(4, 96.0 * MIB));
  }

  @Test
  void oneRankSendsNothing() {
    assertThat(plan(OpType.ALL_REDUCE, MIB, 1, 1).orElseThrow().steps()).isEmpty();
  }

  @Test
  void whatNcclOrOtherKernelsDoIsNotStated() {
    assertThat(plan(OpType.ALL_REDUCE, MIB, 2, 4)).isEmpty();
    assertThat(plan(OpType.ALL_REDUCE, MIB, 1, 9)).isEmpty();
    assertThat(plan(OpType.BROADCAST, MIB, 1, 4)).isEmpty();
  }
}
