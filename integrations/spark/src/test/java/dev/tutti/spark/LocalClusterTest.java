package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests with two executors in separate processes, with two ranks each. */
@Timeout(900)
class LocalClusterTest {
  private static final int KILLS = Integer.getInteger("tutti.spark.kills", 2);

  private static JavaSparkContext spark;
  private static Path shared;

  @BeforeAll
  static void start() throws Exception {
    Path memory = Path.of("/dev/shm");
    shared =
        Files.isDirectory(memory)
            ? Files.createTempDirectory(memory, "tutti-spark-test-")
            : Files.createTempDirectory("tutti-spark-test-");
    spark =
        TestCluster.start(
            "local-cluster[2,2,1024]", Map.of("spark.tutti.gloo.shared.dir", shared.toString()));
  }

  @AfterAll
  static void stop() throws Exception {
    spark.stop();
    assertThat(shared).isEmptyDirectory();
    Files.delete(shared);
  }

  @Test
  void collectivesAreExact() {
    JavaRDD<String> lines =
        SparkWorld.mapPartitions(Bodies.partitions(spark, 4), Bodies::collectives);
    assertThat(lines.collect()).isEqualTo(Bodies.expectedOfFour());
  }

  @Test
  void executorsOfAHostShareMemory() {
    JavaRDD<String> paths =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 4),
            (group, _) -> {
              group.barrier();
              return List.of(
                      group.splitByHost().size() + " " + group.diagnostics().usageByPath().keySet())
                  .iterator();
            });
    assertThat(paths.collect())
        .allSatisfy(path -> assertThat(path).startsWith("4 ").contains("gloo/shared"));
  }

  @Test
  void retryFinishesAfterAnExecutorWasKilled(@TempDir Path folder) throws Exception {
    Set<Long> everSeen = new HashSet<>();
    for (int kill = 0; kill < KILLS; kill++) {
      Path round = Files.createDirectory(folder.resolve("round-" + kill));
      everSeen.addAll(killOne(round, kill % 2 == 0));
      assertThat(shared).isEmptyDirectory();
      Waiting.until("no threads of groups", () -> threadsOfGroups().isEmpty());
    }
    assertThat(everSeen).hasSize(KILLS + 2);
  }

  /**
   * Kills an executor in the middle of a step, and returns which processes took part.
   *
   * @param folder the folder in which the ranks report what they do
   * @param server whether to kill the executor of rank 0, which serves the store
   */
  private static Set<Long> killOne(Path folder, boolean server) throws Exception {
    String name = folder.toString();
    JavaRDD<long[]> totals =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 4), (group, _) -> Bodies.steps(group, name));
    // Spark restarts a barrier stage only if a shuffle follows.
    JavaFutureAction<List<long[]>> job = totals.repartition(1).collectAsync();
    Waiting.until("all step", () -> filesOf(folder, "pid-").size() == 4);
    List<Long> pids = new ArrayList<>();
    for (Path file : filesOf(folder, "pid-")) {
      pids.add(Long.parseLong(Files.readString(file)));
    }
    Set<Long> both = new TreeSet<>(pids);
    assertThat(both).hasSize(2);
    both.remove(pids.getFirst());
    long killed = server ? pids.getFirst() : both.iterator().next();
    ProcessHandle.of(killed).orElseThrow().destroyForcibly();

    Set<Long> ranks = new TreeSet<>();
    Set<Long> retried = new TreeSet<>();
    for (long[] rankTotalPid : job.get()) {
      ranks.add(rankTotalPid[0]);
      assertThat(rankTotalPid[1]).isEqualTo(20_400);
      retried.add(rankTotalPid[2]);
    }
    assertThat(ranks).containsExactly(0L, 1L, 2L, 3L);
    Set<Long> survivors = new TreeSet<>(pids);
    survivors.remove(killed);
    assertThat(survivors).hasSize(1);
    assertThat(retried).containsAll(survivors).doesNotContain(killed).hasSize(2);
    // The survivors name a rank of the lost process.
    List<Path> failures = filesOf(folder, "failure-");
    assertThat(failures).hasSize(2);
    for (Path file : failures) {
      assertThat(Files.readString(file))
          .containsAnyOf(
              "first failing rank " + pids.indexOf(killed),
              "first failing rank " + pids.lastIndexOf(killed));
    }
    retried.addAll(pids);
    return retried;
  }

  /** Checks both executors, each of which runs two tasks of a barrier stage. */
  private static List<String> threadsOfGroups() {
    JavaRDD<String> names =
        Bodies.partitions(spark, 4)
            .rdd()
            .barrier()
            .mapPartitions(new ThreadNames(), false, ThreadNames.TAG)
            .toJavaRDD();
    return names.collect();
  }

  private static List<Path> filesOf(Path folder, String start) throws Exception {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(file -> file.getFileName().toString().startsWith(start))
          .filter(file -> !file.toString().endsWith(".part"))
          .sorted()
          .toList();
    }
  }
}
