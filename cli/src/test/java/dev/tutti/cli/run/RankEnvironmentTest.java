package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class RankEnvironmentTest {
  private static LaunchPlan plan(int localSize, Map<String, String> environment) {
    return new LaunchPlan(
        List.of("true"),
        localSize,
        3,
        1,
        "10.0.0.7",
        29500,
        2,
        "job-7",
        "trainer",
        Optional.of(Path.of("logs")),
        20,
        Duration.ZERO,
        Duration.ofSeconds(1),
        Duration.ofSeconds(1),
        environment,
        Optional.empty(),
        false,
        Optional.empty());
  }

  @Test
  void setsTheNamesOfTorchrun() {
    RankRange ranks = new RankRange(4, 10, "10.0.0.7", 29501);
    assertThat(RankEnvironment.of(plan(4, Map.of("HOME", "/root")), ranks, 2, 1))
        .containsOnly(
            entry("HOME", "/root"),
            entry("RANK", "6"),
            entry("LOCAL_RANK", "2"),
            entry("GROUP_RANK", "1"),
            entry("ROLE_RANK", "6"),
            entry("ROLE_NAME", "trainer"),
            entry("WORLD_SIZE", "10"),
            entry("LOCAL_WORLD_SIZE", "4"),
            entry("GROUP_WORLD_SIZE", "3"),
            entry("ROLE_WORLD_SIZE", "10"),
            entry("MASTER_ADDR", "10.0.0.7"),
            entry("MASTER_PORT", "29501"),
            entry("TORCHELASTIC_RESTART_COUNT", "1"),
            entry("TORCHELASTIC_MAX_RESTARTS", "2"),
            entry("TORCHELASTIC_RUN_ID", "job-7"),
            entry("TORCHELASTIC_USE_AGENT_STORE", "True"),
            entry("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
            entry("OMP_NUM_THREADS", "1"));
  }

  @Test
  void whoJoinsHasNoRankYet() {
    RankRange ranks = new RankRange(4, 10, "10.0.0.7", 29501);
    assertThat(RankEnvironment.ofJoiner(plan(4, Map.of("RANK", "77")), ranks, 2))
        .containsEntry("LOCAL_RANK", "2")
        .containsEntry("TORCHELASTIC_RESTART_COUNT", "0")
        .doesNotContainKeys("RANK", "ROLE_RANK", "WORLD_SIZE", "ROLE_WORLD_SIZE");
  }

  @Test
  void keepsWhatTheUserSet() {
    RankRange ranks = new RankRange(0, 2, "127.0.0.1", 29501);
    Map<String, String> mine =
        Map.of("OMP_NUM_THREADS", "8", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", "RANK", "77");
    assertThat(RankEnvironment.of(plan(2, mine), ranks, 0, 0))
        .contains(
            entry("OMP_NUM_THREADS", "8"),
            entry("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"),
            entry("RANK", "0"));
  }

  @Test
  void leavesThreadsAloneForOneRank() {
    RankRange ranks = new RankRange(0, 1, "127.0.0.1", 29501);
    assertThat(RankEnvironment.of(plan(1, Map.of()), ranks, 0, 0))
        .doesNotContainKey("OMP_NUM_THREADS");
  }
}
