package dev.tutti.runtime.events;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Allocations;
import dev.tutti.runtime.group.ScriptedProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what a JDK Flight Recorder recording contains about a group. */
@Timeout(300)
@Isolated("records the operations of the whole process")
class EventsTest {
  @TempDir Path folder;

  private interface Program {
    void run() throws Exception;
  }

  private List<RecordedEvent> record(Program program) throws Exception {
    Path file = folder.resolve("test.jfr");
    try (Recording recording = new Recording()) {
      recording.enable("dev.tutti.StoreCall").withThreshold(Duration.ZERO);
      recording.start();
      program.run();
      recording.stop();
      recording.dump(file);
    }
    assertThat(Files.size(file)).isPositive();
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().startsWith("dev.tutti."))
        .toList();
  }

  /** Returns events of a type by start time; a file groups them by thread. */
  private static List<RecordedEvent> of(List<RecordedEvent> all, String type) {
    return all.stream()
        .filter(event -> event.getEventType().getName().equals("dev.tutti." + type))
        .sorted(Comparator.comparing(RecordedEvent::getStartTime))
        .toList();
  }

  @Test
  void operationsAndMessagesAreRecorded() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce =
        (op, tensor) -> {
          op.took("scripted/path");
          Thread.sleep(2);
        };
    List<RecordedEvent> all =
        record(
            () -> {
              try (ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "60s")) {
                group.allReduce(Tensor.of(1f, 2f, 3f));
                group.allReduce(Tensor.of(1d), ReduceOp.MAX, CallOptions.ASYNC).await();
                group.send(Tensor.of(1L), 1, 7);
              }
            });
    List<RecordedEvent> operations = of(all, "Operation");
    assertThat(operations).hasSize(2);
    RecordedEvent first = operations.get(0);
    assertThat(first.getString("group")).isEqualTo("0");
    assertThat(first.getInt("rank")).isZero();
    assertThat(first.getLong("sequence")).isEqualTo(1);
    assertThat(first.getString("type")).isEqualTo("allReduce");
    assertThat(first.getString("dtype")).isEqualTo("float32");
    assertThat(first.getLong("bytes")).isEqualTo(12);
    assertThat(first.getString("backend")).isEqualTo("scripted");
    assertThat(first.getString("path")).isEqualTo("scripted/path");
    assertThat(first.getString("state")).isEqualTo("COMPLETED");
    assertThat(first.getDuration().toMillis()).isGreaterThanOrEqualTo(2);
    assertThat(operations.get(1).getLong("sequence")).isEqualTo(2);
    assertThat(operations.get(1).getString("dtype")).isEqualTo("float64");
    assertThat(of(all, "Message"))
        .singleElement()
        .satisfies(
            event -> {
              assertThat(event.getString("type")).isEqualTo("send");
              assertThat(event.getInt("peer")).isEqualTo(1);
              assertThat(event.getInt("tag")).isEqualTo(7);
              assertThat(event.getLong("bytes")).isEqualTo(8);
            });
    assertThat(states(all)).containsExactly("closed", "made");
    assertThat(of(all, "StoreCall")).isNotEmpty();
    assertThat(of(all, "Failure")).isEmpty();
  }

  @Test
  void eachOperationHasItsOwnDuration() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce =
        (op, _) -> {
          if (op.sequenceNumber() == 2) {
            // Unlike a park, it is not ended by what woke this thread before.
            Thread.sleep(300);
          }
        };
    long[] elapsed = new long[1];
    List<RecordedEvent> all =
        record(
            () -> {
              try (ProcessGroup group = provider.alone()) {
                long start = System.nanoTime();
                for (int i = 0; i < 3; i++) {
                  group.allReduce(Tensor.of(1f));
                }
                elapsed[0] = System.nanoTime() - start;
              }
            });
    List<RecordedEvent> operations = of(all, "Operation");
    assertThat(operations).hasSize(3);
    assertThat(operations.get(1).getDuration()).isGreaterThan(Duration.ofMillis(290));
    Duration sum =
        operations.stream().map(RecordedEvent::getDuration).reduce(Duration.ZERO, Duration::plus);
    // The clock of the recording counts in coarser ticks.
    assertThat(sum).isLessThan(Duration.ofNanos(elapsed[0]).plusMillis(10));
  }

  @Test
  void aCollectiveThatBeganUnrecordedIsNotInTheRecording() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    Path file = folder.resolve("second.jfr");
    try (ProcessGroup group = provider.alone();
        Recording first = new Recording();
        Recording second = new Recording()) {
      first.start();
      provider.allReduce = (op, tensor) -> first.stop();
      group.allReduce(Tensor.of(1f));
      provider.allReduce = (op, tensor) -> second.start();
      group.allReduce(Tensor.of(1f));
      provider.allReduce = (op, tensor) -> {};
      group.allReduce(Tensor.of(1f));
      second.stop();
      second.dump(file);
    }
    assertThat(of(RecordingFile.readAllEvents(file), "Operation"))
        .singleElement()
        .satisfies(event -> assertThat(event.getLong("sequence")).isEqualTo(3));
  }

  private static Set<String> states(List<RecordedEvent> all) {
    return of(all, "Group").stream()
        .map(event -> event.getString("state"))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  @Test
  void aFailureIsRecordedWithWhomItNames() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce =
        (op, tensor) -> {
          throw new IllegalStateException("broken");
        };
    List<RecordedEvent> all =
        record(
            () -> {
              try (ProcessGroup group = provider.alone()) {
                assertThat(catchThrowable(() -> group.allReduce(Tensor.of(1f)))).isNotNull();
              }
            });
    assertThat(of(all, "Operation").getFirst().getString("state")).isEqualTo("FAILED");
    assertThat(of(all, "Failure"))
        .singleElement()
        .satisfies(
            event -> {
              assertThat(event.getInt("failedRank")).isZero();
              assertThat(event.getString("kind")).isEqualTo("FAILED");
              assertThat(event.getString("operation")).isEqualTo("allReduce");
              assertThat(event.getString("text")).contains("broken");
            });
    assertThat(states(all)).containsExactly("closed", "failed", "made");
  }

  @Test
  void recordingAllocatesNothingInTheLongRun() throws Exception {
    try (Recording recording = new Recording();
        ProcessGroup group = new ScriptedProvider().alone()) {
      recording.start();
      Tensor tensor = Tensor.of(1f);
      assertThat(Allocations.perCall(() -> group.allReduce(tensor))).isZero();
    }
  }
}
