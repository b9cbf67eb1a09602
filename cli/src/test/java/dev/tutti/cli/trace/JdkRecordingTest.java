package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Pause;
import dev.tutti.runtime.view.RankOperation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that {@code tutti trace} reads recordings of the JDK. */
@Timeout(300)
@Isolated("records the operations of the whole process")
class JdkRecordingTest {
  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();

  private int trace(Path file) {
    return terminal.tutti(Map.of(), "trace", file.toString());
  }

  /** Records a job whose ranks are threads. */
  private Path record(String name, int size, RankBody role) throws Exception {
    Path file = folder.resolve(name);
    try (Recording recording = new Recording()) {
      recording.start();
      ThreadedWorld.of(size).withTimeout(Duration.ofMinutes(4)).run(role);
      recording.stop();
      recording.dump(file);
    }
    return file;
  }

  @Test
  void operationsOfARecordingAreCounted() throws Exception {
    Path file =
        record(
            "job.jfr",
            2,
            group -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC).await());
    assertThat(trace(file)).isZero();
    assertThat(terminal.out())
        .containsPattern("(?m)^0 .* [01]/1 ")
        .containsPattern("(?m)^1 .* [01]/1 ")
        .contains("allReduce (1x)");
  }

  @Test
  void perfettoGetsNamesOfRowsAndNumbersOfElements() throws Exception {
    record(
        "job.jfr",
        2,
        group -> {
          group.allReduce(Tensor.allocate(DType.FLOAT32, 100_000));
          if (group.rank() == 0) {
            group.send(Tensor.of(1d, 2d, 3d), 1, 0);
          } else {
            group.recv(Tensor.of(0d, 0d, 0d), 0, 0);
          }
          group.diagnostics().dumpFlightRecord(folder.resolve("records/rank_"));
        });
    assertThat(slices("job.jfr"))
        .containsExactlyInAnyOrder(
            "rank 0, group 0 collectives: allReduce of 100000 float32",
            "rank 1, group 0 collectives: allReduce of 100000 float32",
            "rank 0, group 0 messages: send of 3 float64",
            "rank 1, group 0 messages: recv of 3 float64");
    assertThat(slices("records"))
        .containsExactlyInAnyOrder(
            "rank 0, group 0 collectives: allReduce of 100000 float32",
            "rank 1, group 0 collectives: allReduce of 100000 float32",
            "rank 0, group 0 messages: send of 3 float64",
            "rank 1, group 0 messages: recv of 3 float64");
  }

  /** Perfetto drops events of a row that overlap without nesting. */
  @Test
  void operationsThatOverlapAreInRowsOfTheirOwn() throws Exception {
    CountDownLatch called = new CountDownLatch(1);
    record(
        "job.jfr",
        2,
        group -> {
          if (group.rank() == 1) {
            assertThat(called.await(4, TimeUnit.MINUTES)).isTrue();
          }
          Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
          Work second = group.allReduce(Tensor.of(1f, 2f), ReduceOp.SUM, CallOptions.ASYNC);
          called.countDown();
          first.await();
          second.await();
        });
    assertThat(slices("job.jfr"))
        .contains(
            "rank 0, group 0 collectives: allReduce of 1 float32",
            "rank 0, group 0 collectives 2: allReduce of 2 float32")
        .hasSize(4);
  }

  /** Perfetto refuses negative times, and garbage is collected before the first operation. */
  @Test
  void timesForPerfettoBeginWithTheFirstPause() throws Exception {
    JobRecords records = JobRecords.empty();
    Issued barrier = new Issued(OpType.BARRIER, 1, "", "", 0, -1, "");
    records.add(new RankOperation(0, "0", barrier, -1, 0, "", true, 5000, 6000, false));
    records.pauses().add(new Pause(0, 1000, 3000, "GC pause"));
    Path events = folder.resolve("events.json");
    Files.writeString(events, PerfettoEvents.write(JobView.of(records)));
    assertThat(TraceEvents.read(events))
        .extracting(TraceEvents.Slice::name, TraceEvents.Slice::start, TraceEvents.Slice::end)
        .containsExactlyInAnyOrder(tuple("GC pause", 0L, 2000L), tuple("barrier", 4000L, 5000L));
  }

  /** Returns the operations that a file for Perfetto shows, and where. */
  private List<String> slices(String of) throws IOException {
    Path events = folder.resolve("events.json");
    String[] arguments = {"trace", folder.resolve(of).toString(), "--perfetto", events.toString()};
    assertThat(terminal.tutti(Map.of(), arguments)).as(terminal.err()).isZero();
    return TraceEvents.read(events).stream()
        .filter(slice -> slice.args().containsKey("elements"))
        .map(
            slice ->
                "%s, %s: %s of %s %s"
                    .formatted(
                        slice.process(),
                        slice.thread(),
                        slice.name(),
                        slice.args().get("elements"),
                        slice.args().get("dtype")))
        .toList();
  }

  @Test
  void theEmptyFileOfAKilledRankIsLeftOut() throws Exception {
    record("job.jfr", 2, group -> group.allReduce(Tensor.of(1f)));
    Path empty = Files.createFile(folder.resolve("killed.jfr"));
    assertThat(trace(folder)).isZero();
    assertThat(terminal.out()).startsWith("healthy\n");
    assertThat(terminal.err().lines())
        .containsExactly(
            "tutti trace: " + empty + " is empty: its rank was killed, or is still running");
  }

  @Test
  void aRecordingThatIsCutOffIsRefusedByName() throws Exception {
    byte[] whole = Files.readAllBytes(record("job.jfr", 1, group -> group.barrier()));
    Path half = folder.resolve("half.jfr");
    Files.write(half, Arrays.copyOf(whole, whole.length / 2));
    int status = trace(half);
    assertThat(terminal.err()).startsWith("tutti trace: " + half + ": not a whole recording: ");
    assertThat(status).isEqualTo(Main.USAGE);
  }

  /** Writes the events of one rank to a file of its own. */
  private void keepOnly(int rank, Path whole) throws IOException {
    try (RecordingFile all = new RecordingFile(whole)) {
      all.write(
          folder.resolve(rank + ".jfr"),
          event ->
              !event.getEventType().getName().startsWith("dev.tutti.")
                  || (event.hasField("rank") && event.getInt("rank") == rank));
    }
  }

  @Test
  void aRankWithoutARecordingIsMissingEvenIfTheGroupIsClosed() throws Exception {
    Path whole = record("whole", 3, group -> group.allReduce(Tensor.of(1f)));
    keepOnly(0, whole);
    keepOnly(1, whole);
    Files.delete(whole);
    assertThat(trace(folder)).isEqualTo(1);
    assertThat(terminal.out()).startsWith("rank 2 left no record\n").doesNotContain("PROBLEM");
  }

  @Test
  void aRecordingMatchesTheFlightRecordsOfOtherRanksAndItsOwn() throws Exception {
    Path whole =
        record(
            "whole",
            2,
            group -> {
              group.allReduce(Tensor.of(1f, 2f), ReduceOp.MAX);
              group.broadcast(Tensor.of(3d), 1);
              group.diagnostics().dumpFlightRecord(folder.resolve("rank_"));
            });
    keepOnly(0, whole);
    Files.delete(whole);
    assertThat(trace(folder)).as(terminal.out()).isZero();
    assertThat(terminal.out())
        .startsWith("healthy\n")
        .containsPattern("(?m)^0 .* \\d/2 ")
        .containsPattern("(?m)^1 .* \\d/2 ");
    assertThat(TraceFiles.read(List.of(folder)).operations().get(0)).hasSize(2);
  }

  @Test
  void aFlightRecordOfAnotherJobIsNotComparedWithARecording() throws Exception {
    Path recording = record("job.jfr", 1, group -> group.allReduce(Tensor.of(1f)));
    Path record =
        Files.writeString(
            folder.resolve("rank_0"),
            "{\"entries\":[{\"op\":\"broadcast\",\"collective_seq_id\":1,\"state\":\"completed\","
                + "\"time_created_ns\":1000000000}]}");
    assertThat(trace(folder)).isEqualTo(Main.USAGE);
    assertThat(terminal.err().lines())
        .hasSize(3)
        .anyMatch(line -> line.endsWith(": " + recording))
        .anyMatch(line -> line.endsWith(": " + record));
  }
}
