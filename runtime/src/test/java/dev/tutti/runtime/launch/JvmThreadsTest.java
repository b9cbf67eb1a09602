package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryManagerMXBean;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JvmThreadsTest {
  private static Optional<String> warning(int cores, String... variables) {
    Map<String, String> environment = new HashMap<>();
    for (String variable : variables) {
      int at = variable.indexOf('=');
      environment.put(variable.substring(0, at), variable.substring(at + 1));
    }
    Settings settings = Settings.ofEnvironment(environment);
    return JvmThreads.warning(settings, cores, () -> List.of("-XX:+A", "-XX:B=2"));
  }

  @ParameterizedTest
  @CsvSource({
    "LOCAL_WORLD_SIZE=4, LOCAL_RANK=0",
    "OMPI_COMM_WORLD_LOCAL_SIZE=4, OMPI_COMM_WORLD_LOCAL_RANK=0",
    "MPI_LOCALNRANKS=4, MPI_LOCALRANKID=0",
    "SLURM_STEP_TASKS_PER_NODE=4, SLURM_LOCALID=0",
    "SLURM_STEP_TASKS_PER_NODE=4(x2), SLURM_LOCALID=0"
  })
  void warnsTheFirstRankOfAHostWhoseCoresAreFull(String size, String rank) {
    assertThat(warning(4, size, rank)).isPresent();
    assertThat(warning(3, size, rank)).isPresent();
    assertThat(warning(5, size, rank)).isEmpty();
    assertThat(warning(4, size, rank.replace("=0", "=1"))).isEmpty();
  }

  @Test
  void namesRanksCoresAndFlags() {
    assertThat(warning(2, "LOCAL_WORLD_SIZE=2", "LOCAL_RANK=0"))
        .contains(
            "2 ranks on 2 cores: threads of the JVM take cores from ranks, and collectives may take"
                + " a hundred times as long; give java the flags -XX:+A -XX:B=2, for instance in"
                + " JDK_JAVA_OPTIONS");
  }

  @Test
  void doesNotWarnWhereTheJvmHasTheFlags() {
    Settings settings = Settings.ofEnvironment(Map.of("LOCAL_WORLD_SIZE", "2", "LOCAL_RANK", "0"));
    assertThat(JvmThreads.warning(settings, 2, List::of)).isEmpty();
  }

  @Test
  void findsTheFlagsThatThisJvmLacks() {
    List<String> collectors =
        ManagementFactory.getGarbageCollectorMXBeans().stream()
            .map(MemoryManagerMXBean::getName)
            .toList();
    assertThat(JvmThreads.missing().contains("-XX:+UseSerialGC"))
        .isNotEqualTo(collectors.contains("Copy"));
  }

  @ParameterizedTest
  @CsvSource({"LOCAL_WORLD_SIZE=1", "LOCAL_WORLD_SIZE=many", "SLURM_STEP_TASKS_PER_NODE='4,2'"})
  void doesNotWarnOfOneRankOrOfAnUnknownNumber(String size) {
    assertThat(warning(1, size, "LOCAL_RANK=0")).isEmpty();
    assertThat(warning(1)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"1, 2", "2, 2", "3, 2", "4, 3", "16, 9", "63, 32", "64, 33"})
  void ranksAreManyOnceOneHasFewerThanTwoCores(int cores, int least) {
    assertThat(JvmThreads.leastCrowd(cores)).isEqualTo(least);
  }
}
