package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cli.JsonSchema;
import dev.tutti.cli.TestTerminal;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.json.Json;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.record.PickleWriter;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Lags;
import dev.tutti.runtime.view.RankOperation;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what {@code tutti trace} reports about jobs whose ranks are threads. */
@Timeout(300)
class TraceCommandTest {
  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();
  private int restarts;

  private interface Role {
    void play(ProcessGroup group) throws Exception;
  }

  private int tutti(Object... arguments) {
    List<String> all = new ArrayList<>(List.of("trace"));
    for (Object argument : arguments) {
      all.add(argument.toString());
    }
    return terminal.tutti(Map.of(), all.toArray(String[]::new));
  }

  /** Runs a program on each rank, and lets each rank write its record. */
  private void run(int size, Duration timeout, Role role) throws Exception {
    HashStore store = new HashStore();
    try (ExecutorService threads = Executors.newFixedThreadPool(size)) {
      List<Callable<Integer>> calls = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        int rank = r;
        calls.add(
            () -> {
              try (ProcessGroup group =
                  ProcessGroup.init(
                      GroupOptions.DEFAULT
                          .withStore(store)
                          .withRank(rank)
                          .withSize(size)
                          .withProvider(new ThreadedProvider())
                          .withSettings(
                              Settings.ofEnvironment(
                                  Map.of("TORCHELASTIC_RESTART_COUNT", "" + restarts)))
                          .withTimeout(timeout))) {
                try {
                  role.play(group);
                } catch (TuttiException e) {
                  assertThat(e).isNotNull();
                }
                return group.diagnostics().dumpFlightRecord(folder.resolve("rank_")).size();
              }
            });
      }
      for (Future<Integer> each : threads.invokeAll(calls, 4, TimeUnit.MINUTES)) {
        assertThat(each.get()).isEqualTo(2);
      }
    }
  }

  private JobView job() throws IOException {
    return JobView.of(TraceFiles.read(List.of(folder)));
  }

  @Test
  void itNamesTheRankThatDiffersAndNotTheOthers() throws Exception {
    CountDownLatch called = new CountDownLatch(2);
    run(
        3,
        Duration.ofSeconds(60),
        group -> {
          group.allReduce(Tensor.of(1f));
          if (group.rank() == 0) {
            // The first to differ would end the call of a rank that has not come.
            assertThat(called.await(60, TimeUnit.SECONDS)).isTrue();
            group.allReduce(Tensor.of(1f, 2f));
          } else {
            Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
            called.countDown();
            work.await();
          }
        });
    assertThat(tutti(folder)).isEqualTo(1);
    assertThat(terminal.out())
        .startsWith("ranks disagree: rank 0 called allReduce #2 float32[2]")
        .containsOnlyOnce("ranks disagree")
        .contains("\nFAILED group 0: the evidence of ")
        .contains("ranks 1, 2 called allReduce #2 float32[1]; rank 0 differs from the others\n");
  }

  @Test
  void itNamesTheNumbersOfRowsThatDiffer() throws Exception {
    CountDownLatch called = new CountDownLatch(2);
    run(
        3,
        Duration.ofSeconds(60),
        group -> {
          Tensor three = Tensor.of(0f, 0f, 0f);
          if (group.rank() == 0) {
            assertThat(called.await(60, TimeUnit.SECONDS)).isTrue();
            group.allGatherInto(three, Tensor.of(1f), new long[] {1, 0, 2});
          } else {
            long[] rows = {1, 2, 0};
            Tensor own = Tensor.allocate(DType.FLOAT32, rows[group.rank()]);
            Work work = group.allGatherInto(three, own, rows, CallOptions.ASYNC);
            called.countDown();
            work.await();
          }
        });
    assertThat(tutti(folder)).isEqualTo(1);
    assertThat(terminal.out())
        .contains("ranks disagree: rank 0 called allGatherInto #1 float32[1+0+2]")
        .contains("ranks 1, 2 called allGatherInto #1 float32[1+2+0]; rank 0 differs");
  }

  @Test
  void itNamesTheRankThatHasNotCome() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    run(
        3,
        Duration.ofSeconds(60),
        group -> {
          group.allReduce(Tensor.of(1f));
          if (group.rank() == 1) {
            while (group.failure().isEmpty()) {
              Thread.onSpinWait();
            }
          } else if (group.rank() == 2) {
            Work work = group.broadcast(Tensor.of(1f, 2f), 0, CallOptions.ASYNC);
            called.countDown();
            work.await();
          } else {
            assertThat(called.await(60, TimeUnit.SECONDS)).isTrue();
            CallOptions options = CallOptions.timeout(Duration.ofMillis(500));
            var _ = group.broadcast(Tensor.of(1f, 2f), 0, options);
          }
        });
    assertThat(tutti(folder)).isEqualTo(1);
    assertThat(terminal.out())
        .containsPattern(
            "^rank 1 is hung: it has not called broadcast #2, which 2 of 3 ranks called"
                + " \\d+(\\.\\d)? m?s ago; ");
  }

  @Test
  void ranksThatHaveNoInputsOrNoOutputsMatchTheOthers() throws Exception {
    run(
        3,
        Duration.ofSeconds(60),
        group -> {
          boolean isRoot = group.rank() == 1;
          List<Tensor> all = List.of(Tensor.of(1f), Tensor.of(2f), Tensor.of(3f));
          group.scatter(Tensor.of(0f), isRoot ? all : List.of(), 1);
          group.gather(isRoot ? all : List.of(), Tensor.of(4f), 1);
          group.broadcast(Tensor.of(5f), 1);
          group.reduce(Tensor.of(6f), ReduceOp.SUM, 1);
          group.barrier();
          if (group.rank() == 0) {
            group.send(Tensor.of(7f), 1, 0);
          } else if (isRoot) {
            group.recv(Tensor.of(0f), 0, 0);
          }
        });
    assertThat(tutti(folder)).as(terminal.out()).isZero();
    assertThat(job().problems()).isEmpty();
  }

  @Test
  void aRecordThatIsStillBeingWrittenIsLeftOut() throws Exception {
    run(2, Duration.ofSeconds(60), group -> group.allReduce(Tensor.of(1f)));
    Files.writeString(folder.resolve(".rank_1.tmp"), "{\"entries\": [");
    assertThat(tutti(folder)).isZero();
  }

  @Test
  void recordsFromBeforeARestartAreLeftOut() throws Exception {
    run(2, Duration.ofSeconds(60), group -> group.broadcast(Tensor.of(1f), 0));
    byte[] json = Files.readAllBytes(folder.resolve("flight-record-1.json"));
    byte[] pickle = Files.readAllBytes(folder.resolve("rank_1"));
    restarts = 1;
    run(2, Duration.ofSeconds(60), group -> group.allReduce(Tensor.of(1f)));
    assertThat(tutti(folder)).isZero();
    Files.write(folder.resolve("flight-record-1.json"), json);
    Files.write(folder.resolve("rank_1"), pickle);
    terminal.reset();
    assertThat(tutti(folder)).isEqualTo(1);
    assertThat(terminal.out()).startsWith("rank 1 left no record\n").doesNotContain("disagree");
    assertThat(terminal.err())
        .contains(
            "flight-record-1.json is left out: it was written after 0 restarts, and others after 1",
            "rank_1 is left out");
  }

  @Test
  void recordsOfAnOlderJobThatWasRestartedMoreOftenAreLeftOut() throws Exception {
    restarts = 3;
    run(3, Duration.ofSeconds(60), group -> group.broadcast(Tensor.of(1f), 0));
    restarts = 1;
    run(2, Duration.ofSeconds(60), group -> group.allReduce(Tensor.of(1f)));
    assertThat(tutti(folder)).as(() -> terminal.out()).isZero();
    assertThat(terminal.err())
        .contains(
            "flight-record-2.json is left out: it was written after 3 restarts, and others after 1",
            "rank_2 is left out");
  }

  @Test
  void anAttemptThatHasCalledNothingIsTheLast() throws Exception {
    run(3, Duration.ofSeconds(60), group -> group.broadcast(Tensor.of(1f), 0));
    restarts = 1;
    run(2, Duration.ofSeconds(60), group -> {});
    int _ = tutti(folder);
    assertThat(terminal.err())
        .contains(
            "flight-record-2.json is left out: it was written after 0 restarts, and others after 1",
            "rank_2 is left out");
  }

  /** A pickle gives a barrier the tensor that PyTorch's has. */
  @Test
  void aBarrierInAPickleMatchesOneInJson() throws Exception {
    run(2, Duration.ofSeconds(60), ProcessGroup::barrier);
    Files.delete(folder.resolve("flight-record-1.json"));
    assertThat(tutti(folder)).as(() -> terminal.out()).isZero();
  }

  @Test
  void picklesAloneAreEnoughAndARankWithoutARecordIsSaid() throws Exception {
    run(2, Duration.ofSeconds(60), group -> group.allReduce(Tensor.of(1d), ReduceOp.MAX));
    Files.delete(folder.resolve("flight-record-0.json"));
    Files.delete(folder.resolve("flight-record-1.json"));
    assertThat(tutti(folder.resolve("rank_0"), folder.resolve("rank_1"))).isZero();
    terminal.reset();
    assertThat(tutti(folder.resolve("rank_0"))).isEqualTo(1);
    assertThat(terminal.out()).startsWith("rank 1 left no record\n");
  }

  @Test
  void clocksAreAlignedByTheEndsOfCollectives() {
    JobRecords trace = JobRecords.empty();
    for (int i = 1; i <= 5; i++) {
      for (int rank = 0; rank < 2; rank++) {
        long clock = rank * 1_000_000L;
        trace.add(
            new RankOperation(
                rank,
                "0",
                new Issued(OpType.BARRIER, i, "", "", 0, -1, ""),
                -1,
                0,
                "",
                true,
                i * 1000L + clock,
                i * 1000L + 100 + clock + (i == 5 && rank == 1 ? 777 : 0),
                false));
      }
    }
    assertThat(Lags.of(trace).offset(0)).isZero();
    assertThat(Lags.of(trace).offset(1)).isEqualTo(-1_000_000L);
  }

  /** Writes what a rank of PyTorch records of an all-reduce and a broadcast on Gloo. */
  private void recordTorch(int rank, int broadcastElements) throws IOException {
    List<Object> entries = new ArrayList<>();
    for (int i = 1; i <= 2; i++) {
      entries.add(
          Map.of(
              "process_group",
              List.of("0", "default_pg"),
              "collective_seq_id",
              (long) i,
              "profiling_name",
              i == 1 ? "gloo:all_reduce" : "gloo:broadcast",
              "input_sizes",
              List.of(List.of(i == 1 ? 1L : broadcastElements)),
              "input_dtypes",
              List.of("Float"),
              "state",
              "scheduled",
              "retired",
              true,
              "is_p2p",
              false));
    }
    Files.write(folder.resolve("rank_" + rank), PickleWriter.write(Map.of("entries", entries)));
  }

  @Test
  void ranksOfPyTorchAreNotBlamedForWhatTheirRecordsLeaveOut() throws Exception {
    run(
        2,
        Duration.ofSeconds(60),
        group -> {
          group.allReduce(Tensor.of(1f));
          group.broadcast(Tensor.of(1f, 2f), 1);
        });
    recordTorch(2, 2);
    assertThat(job().verdict()).isEqualTo(JobVerdict.HEALTHY);
    assertThat(job().problems()).isEmpty();
    assertThat(job().lags().of(2).times()).isZero();
    recordTorch(2, 3);
    assertThat(job().verdict().text()).contains("broadcast #2", "rank 2 differs from the others");
  }

  @Test
  void theRecordKeepsToItsSchema() throws Exception {
    run(
        2,
        Duration.ofSeconds(60),
        group -> {
          group.allReduce(Tensor.of(1f));
          if (group.rank() == 0) {
            group.send(Tensor.of(1f), 1, 0);
          } else {
            group.recv(Tensor.of(0f), 0, 0);
            group.abort("enough");
          }
          group.barrier();
        });
    Path docs = Path.of("../docs/flight-record.schema.json");
    Object schema = Json.read(Files.readString(docs));
    Object record = Json.read(Files.readString(folder.resolve("flight-record-1.json")));
    assertThat(JsonSchema.misfits("record", record, schema)).isEmpty();
    assertThat(record).asInstanceOf(InstanceOfAssertFactories.MAP).containsKey("failures");
    assertThat(JsonSchema.misfits("record", Map.of("version", 1L), schema))
        .anyMatch(text -> text.contains("version"))
        .anyMatch(text -> text.contains("entries"));
  }

  @Test
  void whatIsNoRecordIsRefusedByName() throws Exception {
    Path file = folder.resolve("other_0");
    Files.writeString(file, "{\"a\":1}");
    assertThat(tutti(file)).isNotZero();
    assertThat(terminal.err()).contains("other_0: not a flight record");
    assertThatThrownBy(() -> Json.read("{\"a\":[1,2}"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Json.read("[".repeat(100_000)))
        .isInstanceOf(IllegalArgumentException.class);
    // A pickle that names a class to call.
    assertThatThrownBy(
            () -> PickleReader.read(new byte[] {(byte) 0x80, 2, 'c', 'o', 's', '\n', '.'}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("opcode 0x63");
  }
}
