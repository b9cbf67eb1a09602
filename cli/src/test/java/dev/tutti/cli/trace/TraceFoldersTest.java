package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.OpType;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.trace.TraceJobs.Part;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobRecords.Taken;
import dev.tutti.runtime.view.RankOperation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests what {@code tutti trace} says about folders with several jobs, attempts or nodes. */
class TraceFoldersTest {
  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();

  private int trace() {
    return terminal.tutti(Map.of(), "trace", folder.toString());
  }

  /** Writes the record of a rank that called an operation at each of the given seconds. */
  private Path record(String name, int rank, int size, String state, long... seconds)
      throws IOException {
    StringBuilder entries = new StringBuilder();
    for (int i = 0; i < seconds.length; i++) {
      entries
          .append(i == 0 ? "" : ",")
          .append("{\"op\":\"allReduce\",\"process_group\":[\"0\"],\"collective_seq_id\":")
          .append(i + 1)
          .append(",\"input_sizes\":[[2]],\"input_dtypes\":[\"Float\"],\"state\":\"")
          .append(i < seconds.length - 1 ? "completed" : state)
          .append("\",\"time_created_ns\":")
          .append(seconds[i] * 1_000_000_000)
          .append("}");
    }
    String ranks =
        Stream.iterate(0, r -> r + 1).limit(size).map(String::valueOf).toList().toString();
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.writeString(
        file,
        "{\"rank\":%d,\"restarts\":0,\"pg_config\":{\"0\":{\"ranks\":\"%s\"}},\"entries\":[%s]}"
            .formatted(rank, ranks, entries));
  }

  @Test
  void twoJobsAreRefusedWithTheFilesOfEach() throws Exception {
    Path a0 = record("a0.json", 0, 2, "completed", 100, 200);
    Path b0 = record("b0.json", 0, 2, "completed", 300, 400);
    Path a1 = record("a1.json", 1, 2, "completed", 100, 200);
    Path b1 = record("b1.json", 1, 2, "completed", 300, 400);
    assertThat(trace()).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().lines().map(line -> line.replaceFirst("until [-0-9]+ [:0-9]+:", "")))
        .containsExactly(
            "tutti trace: the files are of 2 jobs or attempts; give those of one:",
            "   " + a0 + ", " + a1,
            "   " + b0 + ", " + b1);
  }

  /** Returns a file in which a rank called an operation at a time, and ended it. */
  private static Part file(String name, long startSeconds, long endSeconds) {
    JobRecords records = JobRecords.empty();
    Issued call = new Issued(OpType.ALL_REDUCE, 7, "", "float32", 1, -1, "");
    long start = Duration.ofSeconds(startSeconds).toNanos();
    long end = Duration.ofSeconds(endSeconds).toNanos();
    records.add(new RankOperation(0, "0", call, -1, 0, "", true, start, end, false));
    records.taken().put(0, new Taken(Duration.ofSeconds(100).toNanos(), 0));
    return new Part(name, name.endsWith(".jfr"), records);
  }

  /** Its flight record has the last time that it knows, its recording the time of each call. */
  @Test
  void theRecordingOfARankThatNeverWaitedIsOfItsJob() {
    Part record = file("0.json", 10, 0);
    TraceJobs.requireOne(List.of(record, file("0.jfr", 90, 91)));
    assertThatThrownBy(() -> TraceJobs.requireOne(List.of(record, file("0.jfr", 110, 111))))
        .hasMessageContaining("the files are of 2 jobs");
    assertThatThrownBy(() -> TraceJobs.requireOne(List.of(record, file("0.jfr", 5, 6))))
        .hasMessageContaining("the files are of 2 jobs");
  }

  /** A job of fewer ranks leaves files of an older one. */
  @Test
  void aRankOfALargerJobIsOfAnotherOne() throws Exception {
    Path left = record("flight-record-2.json", 2, 3, "completed", 100);
    record("flight-record-0.json", 0, 2, "completed", 300);
    record("flight-record-1.json", 1, 2, "completed", 300);
    assertThat(trace()).isEqualTo(Main.USAGE);
    assertThat(terminal.err().lines().skip(1).findFirst().orElseThrow()).endsWith(": " + left);
  }

  @Test
  void theLaterOfTwoRecordsOfARankCounts() throws Exception {
    record("early/flight-record-0.json", 0, 2, "completed", 100);
    record("late/flight-record-0.json", 0, 2, "started", 100, 200);
    record("late/flight-record-1.json", 1, 2, "started", 100, 200);
    assertThat(trace()).as(() -> terminal.out() + terminal.err()).isZero();
    assertThat(terminal.out()).containsPattern("(?m)^0 +0 +allReduce #2 ");
  }

  @Test
  void subfoldersAreReadWithoutWhatIsNoRecord() throws Exception {
    record("node0/flight-record-0.json", 0, 2, "completed", 100);
    record("node1/deep/flight-record-1.json", 1, 2, "completed", 100);
    Files.writeString(folder.resolve("node0").resolve("stdout.log"), "step 1\n");
    assertThat(trace()).as(() -> terminal.err()).isZero();
    assertThat(terminal.err()).isEmpty();
    assertThat(terminal.out()).containsPattern("(?m)^0 .* 0/1 ").containsPattern("(?m)^1 .* 0/1 ");
  }

  @Test
  void aLinkToAFolderIsNamed() throws Exception {
    record("flight-record-0.json", 0, 1, "completed", 100);
    Path link = Files.createSymbolicLink(folder.resolve("link"), folder);
    assertThat(trace()).isZero();
    assertThat(terminal.err()).contains(link + " is left out: a link to a folder");
  }

  @Test
  void operationsThatDidNotCompleteAreShown() throws Exception {
    record("flight-record-0.json", 0, 2, "started", 100, 200);
    record("flight-record-1.json", 1, 2, "started", 100, 200);
    assertThat(trace()).isZero();
    assertThat(terminal.out().lines())
        .startsWith("healthy", "")
        .filteredOn(line -> line.matches("[01] +0 +allReduce #2 .*"))
        .hasSize(2);
  }

  @Test
  void oneLineCountsTheLaterOperationsThatDidNotComplete() throws Exception {
    String entries =
        Stream.iterate(1, i -> i + 1)
            .limit(12)
            .map(
                i ->
                    "{\"op\":\"recv\",\"is_p2p\":true,\"p2p_seq_id\":%d,\"peer\":1,\"state\":\"started\"}"
                        .formatted(i))
            .collect(Collectors.joining(","));
    Files.writeString(folder.resolve("rank_0"), "{\"entries\":[" + entries + "]}");
    assertThat(trace()).isZero();
    assertThat(terminal.out())
        .containsPattern("(?m)^0 +0 +recv #1 from rank 1, tag 0 and 11 more  ");
  }
}
