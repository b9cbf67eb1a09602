package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests with ranks as threads of one executor, in this JVM. */
class LocalWorldTest {
  private static final Map<Integer, String> FAILURES = new ConcurrentHashMap<>();

  private static final List<String> COMMANDS = new CopyOnWriteArrayList<>();
  private static final String TOKEN = "a token of the test for all its ranks";
  private static final Pattern STATUS =
      Pattern.compile("tutti status --at tcp://(.*):(\\d+) --prefix (\\d+\\.0) shows this stage");

  @TempDir static Path shared;
  private static JavaSparkContext spark;

  @BeforeAll
  static void start() {
    spark =
        TestCluster.start(
            "local[4, 4]",
            Map.of(
                "spark.tutti.timeout",
                "250s",
                "spark.tutti.TUTTI_GLOO_SHARED_DIR",
                shared.toString()));
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  @AfterEach
  void nothingIsLeft() throws Exception {
    FAILURES.clear();
    JoinOfOne.forget();
    Waiting.until("no threads of groups", () -> Bodies.threadsOfGroups().isEmpty());
    // A task that was killed closes its group after its body has thrown.
    Waiting.until("no shared memory", LocalWorldTest::isNothingShared);
  }

  private static boolean isNothingShared() throws IOException {
    try (Stream<Path> files = Files.list(shared)) {
      return files.findAny().isEmpty();
    }
  }

  @Test
  void collectivesAreExact() {
    JavaRDD<String> lines =
        SparkWorld.mapPartitions(Bodies.partitions(spark, 4), Bodies::collectives);
    assertThat(lines.collect()).isEqualTo(Bodies.expectedOfFour());
  }

  @Test
  void oneRankIsAGroup() {
    JavaRDD<Double> sums =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 1),
            (group, _) -> {
              Tensor sum = Tensor.of(2.5);
              group.allReduce(sum);
              return List.of(sum.getDouble(0)).iterator();
            });
    assertThat(sums.collect()).containsExactly(2.5);
  }

  @Test
  void settingsOfSparkGiveWayToThoseOfTheProgram() {
    JavaRDD<Duration> timeouts =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 2),
            (group, _) -> {
              Duration ofSpark = group.timeout();
              group.close();
              GroupOptions options = GroupOptions.DEFAULT;
              options = options.withSetting("TUTTI_TIMEOUT", "240s");
              ProcessGroup joined = SparkWorld.join(options);
              joined.barrier(); // rank 0 may not leave, with the store, while another joins
              return List.of(ofSpark, joined.timeout()).iterator();
            });
    Duration ofSpark = Duration.ofSeconds(250);
    Duration ofProgram = Duration.ofMinutes(4);
    assertThat(timeouts.collect()).containsExactly(ofSpark, ofProgram, ofSpark, ofProgram);
  }

  @Test
  void rankZeroLogsHowToAskForTheStatus() {
    Logger logger = Logger.getLogger(BarrierRendezvous.class.getName());
    logger.setFilter(record -> COMMANDS.add(new SimpleFormatter().formatMessage(record)));
    try {
      JavaRDD<Boolean> found =
          SparkWorld.mapPartitions(
              Bodies.partitions(spark, 2),
              (group, _) -> {
                group.close();
                GroupOptions options = GroupOptions.DEFAULT;
                options = options.withSetting("TUTTI_TOKEN", TOKEN);
                ProcessGroup joined = SparkWorld.join(options);
                joined.barrier();
                boolean isThere = hasJoinedBelow(COMMANDS.getLast());
                joined.barrier(); // the store ends with the task of rank 0
                return List.of(isThere).iterator();
              });
      assertThat(found.collect()).containsExactly(true, true);
    } finally {
      logger.setFilter(null);
    }
    assertThat(COMMANDS).hasSize(2);
  }

  /** Returns whether ranks joined at the store, and below the prefix, that a command names. */
  private static boolean hasJoinedBelow(String command) {
    Matcher parts = STATUS.matcher(command);
    assertThat(parts.matches()).as(command).isTrue();
    TcpStoreOptions options =
        TcpStoreOptions.of(parts.group(1), Integer.parseInt(parts.group(2)))
            .withToken(JobToken.of(TOKEN));
    try (TcpStore store = new TcpStore(options)) {
      return new PrefixStore(parts.group(3), store).listKeys().contains("tutti/0/joined/1");
    }
  }

  @Test
  void ranksHearWhyATaskFailedAndTheRetrySucceeds() {
    JavaRDD<Integer> attempts =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 4),
            (group, _) -> {
              int attempt = BarrierTaskContext.get().stageAttemptNumber();
              try {
                // A rank that is still joining when Spark kills the stage is notified only of the
                // kill.
                group.barrier();
                if (attempt == 0 && group.rank() == 2) {
                  throw new IllegalStateException("no such column");
                }
                group.barrier();
              } catch (RuntimeException e) {
                FAILURES.put(group.rank(), e.getMessage());
                throw e;
              }
              return List.of(attempt).iterator();
            });
    // Spark restarts a barrier stage only if a shuffle follows.
    assertThat(attempts.repartition(1).collect()).containsExactly(1, 1, 1, 1);
    assertThat(FAILURES.remove(2)).isEqualTo("no such column");
    assertThat(FAILURES).containsOnlyKeys(0, 1, 3);
    assertThat(FAILURES.values())
        .allSatisfy(
            text -> assertThat(text).contains("no such column").contains("first failing rank 2"));
  }

  /** Spark kills the other tasks of a stage before the group has determined which rank failed. */
  @Test
  void aKillForAnotherTaskLeavesTheGroupTimeToNameThatRank() {
    JavaRDD<Integer> attempts =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 2),
            (group, _) -> {
              int attempt = BarrierTaskContext.get().stageAttemptNumber();
              if (attempt == 0 && group.rank() == 1) {
                byte[] _ = group.store().get("killed");
                throw new IllegalStateException("no such column");
              }
              try {
                if (attempt == 0) {
                  BarrierTaskContext.get()
                      .markInterrupted("Task ShuffleMapTask(1, 1) from barrier stage 1 failed.");
                  group.store().set("killed", "yes");
                }
                group.barrier();
              } catch (RuntimeException e) {
                FAILURES.put(group.rank(), e.getMessage());
                throw e;
              }
              return List.of(attempt).iterator();
            });
    assertThat(attempts.repartition(1).collect()).containsExactly(1, 1);
    assertThat(FAILURES).containsOnlyKeys(0);
    assertThat(FAILURES.get(0)).contains("no such column").contains("first failing rank 1");
  }

  @Test
  void cancelledJobEndsWhoWaits() throws Exception {
    // Spark kills tasks without an interrupt, and rank 1 never sends.
    JavaRDD<Integer> waiting =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 2),
            (group, _) -> {
              FAILURES.put(-1 - group.rank(), "waits");
              try {
                group.recv(Tensor.of(0f), 1 - group.rank());
              } catch (RuntimeException e) {
                FAILURES.put(group.rank(), e.getMessage());
                throw e;
              }
              return List.of(0).iterator();
            });
    JavaFutureAction<List<Integer>> job = waiting.collectAsync();
    Waiting.until("both wait", () -> FAILURES.containsKey(-1) && FAILURES.containsKey(-2));
    job.cancel(true);
    Waiting.until("both ended", () -> FAILURES.containsKey(0) && FAILURES.containsKey(1));
    assertThat(FAILURES.get(0)).contains("was killed");
    assertThat(FAILURES.get(1)).contains("was killed");
  }

  @Test
  void cancelledJobEndsWhoStillJoins() throws Exception {
    // Rank 1 takes part in Spark's exchange but then does not reach the store.
    JavaRDD<Integer> joining =
        Bodies.partitions(spark, 2)
            .rdd()
            .barrier()
            .mapPartitions(new JoinOfOne(), false, JoinOfOne.TAG)
            .toJavaRDD();
    JavaFutureAction<List<Integer>> job = joining.collectAsync();
    Waiting.until("rank 1 waits", () -> JoinOfOne.WAITING.get());
    job.cancel(true);
    Waiting.until("rank 0 ended", () -> JoinOfOne.FAILURE.get() != null);
    assertThat(JoinOfOne.FAILURE.get())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("was killed");
  }

  @Test
  void allHearThatRankZeroCannotServe() {
    JavaRDD<String> messages =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 2),
            (group, _) -> {
              GroupOptions options = GroupOptions.DEFAULT;
              options = options.withSetting("TUTTI_TLS", "true");
              try {
                SparkWorld.join(options);
                return List.of("joined").iterator();
              } catch (IllegalStateException e) {
                return List.of(e.getMessage()).iterator();
              }
            });
    assertThat(messages.collect())
        .hasSize(2)
        .allSatisfy(text -> assertThat(text).startsWith("rank 0 cannot serve the store: "));
  }

  @Test
  void whatSparkDecidesCannotBeGiven() {
    JavaRDD<String> messages =
        SparkWorld.mapPartitions(
            Bodies.partitions(spark, 1),
            (_, _) -> {
              try {
                SparkWorld.join(GroupOptions.DEFAULT.withRank(0));
                return List.of("").iterator();
              } catch (IllegalArgumentException e) {
                return List.of(e.getMessage()).iterator();
              }
            });
    assertThat(messages.collect().getFirst()).contains("come from Spark").contains("rank 0");
  }

  @Test
  void outsideOfABarrierStageTheRemedyIsSaid() {
    assertThatThrownBy(SparkWorld::join)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("rdd.barrier().mapPartitions");
  }
}
