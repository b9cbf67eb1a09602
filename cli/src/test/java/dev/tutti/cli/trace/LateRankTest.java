package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Tensor;
import dev.tutti.cli.TestTerminal;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Lags;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what {@code tutti trace} reports about a rank that comes late to each collective. */
@Isolated("threads of other tests in shared locks would bring in real time")
class LateRankTest {
  private static final int SIZE = 3;
  private static final int LATE = 2;
  private static final int REDUCTIONS = 10;
  private static final Duration PAUSE = Duration.ofMillis(50);

  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();

  /** Lets all ranks meet in a barrier and reduce ten times, and writes their records. */
  private Path records() throws IOException {
    Map<Integer, String> records = new TreeMap<>();
    List<Tensor> tensors = ReplayTest.tensors(SIZE);
    var _ =
        SimulatedWorld.of(SIZE)
            .run(
                group -> {
                  for (int step = 0; step <= REDUCTIONS; step++) {
                    if (group.rank() == LATE) {
                      SimulatedWorld.sleep(PAUSE);
                    }
                    if (step == 0) {
                      group.barrier();
                    } else {
                      group.allReduce(tensors.get(group.rank()));
                    }
                  }
                  records.put(group.rank(), group.diagnostics().flightRecord());
                });
    Path written = Files.createDirectory(folder.resolve("records"));
    for (Map.Entry<Integer, String> each : records.entrySet()) {
      Files.writeString(written.resolve("rank_" + each.getKey() + ".json"), each.getValue());
    }
    return written;
  }

  @Test
  void itIsNamedWithHowLongTheOthersWaited() throws Exception {
    Path written = records();
    JobView job = JobView.of(TraceFiles.read(List.of(written)));
    assertThat(job.problems()).isEmpty();
    Lags.Lag last = job.lags().of(LATE);
    assertThat(last.times()).isEqualTo(1 + REDUCTIONS);
    assertThat(last.medianNanos()).isEqualTo(PAUSE.toNanos());
    assertThat(last.lastIn()).containsOnly(Map.entry("barrier", 1), Map.entry("allReduce", 10));
    // The ranks leave the set-up one after the other.
    long pause = PAUSE.toNanos();
    assertThat(last.totalNanos()).isBetween(REDUCTIONS * pause, (1 + REDUCTIONS) * pause);
    assertThat(job.lags().of(0).times()).isZero();
    assertThat(job.lags().of(0).waitingNanos())
        .isBetween(REDUCTIONS * pause, (1 + REDUCTIONS) * pause);
    assertThat(last.waitingNanos()).isZero();
    Path html = folder.resolve("page.html");
    Path perfetto = folder.resolve("events.json");
    assertThat(
            terminal.tutti(
                Map.of(),
                "trace",
                written.toString(),
                "--html",
                html.toString(),
                "--perfetto",
                perfetto.toString()))
        .isZero();
    assertThat(terminal.out())
        .startsWith("rank 2 is slow: last in 11 of 11, others waited 550 ms for it (")
        .contains(" last in\n", "allReduce (10x)");
    assertThat(Files.readString(html))
        .contains("<canvas", "\"rank 2 is slow: last in 11 of 11", "\"allReduce #2 float32[1]\"");
    assertThat(TraceEvents.read(perfetto)).hasSize(3 * 11);
  }
}
