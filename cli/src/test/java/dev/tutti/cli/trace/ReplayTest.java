package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cli.TestTerminal;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.simulation.FaultPlan;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.json.Json;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobRecords.Failed;
import dev.tutti.runtime.view.JobView;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that verdicts follow from what ranks record of them. {@code -Dtutti.seeds=5000} sets how
 * many worlds each test makes, {@code -Dtutti.firstSeed=…} with which seed it begins.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class ReplayTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 20);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();
  private final Map<Integer, String> records = new TreeMap<>();
  private final Map<Integer, TuttiException> thrown = new TreeMap<>();

  /** Returns a body that keeps the record of its rank if the program fails. */
  private RankBody recorded(RankBody program) {
    return group -> {
      try {
        program.run(group);
      } catch (TuttiException e) {
        records.put(group.rank(), group.diagnostics().flightRecord());
        thrown.put(group.rank(), e);
      }
    };
  }

  /** Makes the tensors of all ranks, as the JDK's cleaner would bring real time into a world. */
  static List<Tensor> tensors(int size) {
    return IntStream.range(0, size).mapToObj(_ -> Tensor.of(1f)).toList();
  }

  /** Returns a program in which ranks sum, and pass a message around the ring. */
  private static RankBody steps(long seed, List<Tensor> tensors) {
    return group -> {
      Tensor tensor = tensors.get(group.rank());
      SplittableRandom random = new SplittableRandom(seed);
      for (int step = 0; step < 60; step++) {
        SimulatedWorld.sleep(Duration.ofMillis(200));
        int source = (group.rank() + group.size() - 1) % group.size();
        if (random.nextInt(3) > 0) {
          group.allReduce(tensor);
        } else if (group.rank() == 0) {
          group.send(tensor, 1, step);
          group.recv(tensor, source, step);
        } else {
          group.recv(tensor, source, step);
          group.send(tensor, (group.rank() + 1) % group.size(), step);
        }
      }
    };
  }

  private JobRecords trace() {
    JobRecords trace = JobRecords.empty();
    records.forEach(
        (rank, json) -> {
          if (Json.read(json) instanceof Map<?, ?> record) {
            FlightRecordReader.add(record, rank, trace);
          }
        });
    return trace;
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void verdictsFollowFromWhatIsRecorded(int size) {
    int failed = 0;
    List<Tensor> tensors = tensors(size);
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      records.clear();
      thrown.clear();
      FaultPlan plan =
          FaultPlan.random(new SplittableRandom(seed), size, 2, Duration.ofSeconds(12));
      var _ =
          SimulatedWorld.of(size)
              .withSeed(seed)
              .withTimeout(Duration.ofSeconds(4))
              .withFaults(plan)
              .run(recorded(steps(seed, tensors)));
      JobRecords trace = trace();
      String world = "seed " + seed + ", " + plan;
      assertThat(trace.notes()).as(world).isEmpty();
      assertThat(JobView.of(trace).problems())
          .as(world)
          .noneMatch(text -> text.contains("but its evidence says"));
      Map<Integer, Failed> failures = trace.failures().getOrDefault("0", new TreeMap<>());
      assertThat(failures.keySet()).as(world).isEqualTo(thrown.keySet());
      failures.forEach(
          (rank, failure) ->
              assertThat(thrown.get(rank))
                  .as(world)
                  .hasMessageContaining("failed: " + failure.text() + " [rank "));
      failed += failures.size();
    }
    assertThat(failed).isPositive();
  }

  /** Makes two ranks wait for a third one that stands still, and writes their records. */
  private void letRankTwoStandStill() throws IOException {
    Duration pause = Duration.ofSeconds(60);
    List<Tensor> tensors = tensors(3);
    var _ =
        SimulatedWorld.of(3)
            .withTimeout(Duration.ofSeconds(4))
            .withFaults(
                new FaultPlan(
                    List.of(new Fault(FaultPlan.Kind.PAUSE, 2, Duration.ofSeconds(3), pause))))
            .run(
                recorded(
                    group -> {
                      for (int step = 0; step < 60; step++) {
                        SimulatedWorld.sleep(Duration.ofMillis(200));
                        group.allReduce(tensors.get(group.rank()));
                      }
                    }));
    assertThat(records).containsKeys(0, 1);
    for (int rank = 0; rank < 2; rank++) {
      Files.writeString(folder.resolve("flight-record-" + rank + ".json"), records.get(rank));
    }
  }

  private int tutti() {
    return terminal.tutti(Map.of(), "trace", folder.toString());
  }

  @Test
  void aVerdictIsJudgedAgain() throws IOException {
    letRankTwoStandStill();
    assertThat(tutti()).as("no record of rank 2").isEqualTo(1);
    assertThat(terminal.out())
        .containsPattern(
            "(?m)^FAILED group 0: rank [01] timed out in allReduce #\\d+: .*; rank 2 does not"
                + " answer; the evidence of ranks 0, 1 says the same$");
  }

  @Test
  void aVerdictThatDoesNotFollowIsAProblem() throws IOException {
    letRankTwoStandStill();
    Path file = folder.resolve("flight-record-1.json");
    String record = Files.readString(file);
    assertThat(record).contains("\"verdict\":2");
    Files.writeString(file, record.replace("\"verdict\":2", "\"verdict\":0"));
    assertThat(tutti()).isEqualTo(1);
    assertThat(terminal.out())
        .contains("PROBLEM group 0: rank 1 threw \"", "the evidence of rank 0 says the same");
  }

  @Test
  void aFailureOfAnotherVersionIsLeftOut() throws IOException {
    letRankTwoStandStill();
    Path file = folder.resolve("flight-record-1.json");
    Files.writeString(
        file, Files.readString(file).replace("\"strangers\":", "\"something else\":"));
    int _ = tutti();
    assertThat(terminal.err())
        .contains(
            "rank 1: the failure of group 0 cannot be judged again: not the evidence of a failure:"
                + " it has no 'strangers'");
    assertThat(terminal.out()).contains("the evidence of rank 0 says the same");
  }
}
