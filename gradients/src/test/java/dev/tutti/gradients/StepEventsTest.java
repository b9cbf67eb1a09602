package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests the events that JDK Flight Recorder receives. */
@Isolated("records the operations of the whole process")
class StepEventsTest {
  @TempDir Path folder;

  @Test
  void aStepIsAnEvent() throws Exception {
    Path file = folder.resolve("steps.jfr");
    try (Recording recording = new Recording()) {
      recording.enable("dev.tutti.GradientStep");
      recording.start();
      Worlds.THREADED.run(
          2,
          group -> {
            Tensor parameter = Tensor.allocate(DType.FLOAT32, 10);
            try (GradientReducer reducer = new GradientReducer(group, List.of(parameter))) {
              for (int step = 0; step < 3; step++) {
                reducer.ready(0);
                reducer.await();
              }
            }
          });
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> events =
        RecordingFile.readAllEvents(file).stream()
            .filter(event -> event.getEventType().getName().equals("dev.tutti.GradientStep"))
            .filter(event -> event.getLong("bytes") == 40)
            .toList();
    assertThat(events).hasSize(6);
    assertThat(events)
        .allSatisfy(
            event -> {
              assertThat(event.getString("group")).isEqualTo("0");
              assertThat(event.getInt("rank")).isBetween(0, 1);
              assertThat(event.getLong("step")).isBetween(1L, 3L);
              assertThat(event.getInt("buckets")).isEqualTo(1);
              assertThat(event.getLong("stepTime")).isPositive();
              assertThat(event.getLong("communication")).isPositive();
            });
  }
}
