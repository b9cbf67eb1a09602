package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.platform.engine.TestExecutionResult.Status.SUCCESSFUL;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.fake.CallRecorder;
import dev.tutti.fake.Faults;
import dev.tutti.fake.WorldTimeoutException;
import dev.tutti.testkit.Execution;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests worlds that are simulated by seed. */
@Isolated("threads of other tests in shared locks would bring in real time")
class WorldSeedsTest {
  @Test
  void everySeedRunsTwice() {
    Execution execution = Execution.of(Parameters.class);
    assertThat(execution.failures()).isEmpty();
    assertThat(execution.names())
        .containsExactlyElementsOf(
            Stream.of(2, 3)
                .flatMap(
                    size ->
                        IntStream.range(0, 3)
                            .mapToObj(seed -> "parameters [size=%d, seed=%d".formatted(size, seed)))
                .flatMap(name -> Stream.of(name + "]", name + ", again]"))
                .toList());
  }

  static class Parameters {
    private final AtomicInteger shared = new AtomicInteger();
    private int prepared;

    @BeforeEach
    void prepare() {
      prepared++;
    }

    @World(
        sizes = {2, 3},
        seeds = 3)
    void parameters(
        @Rank int rank, ProcessGroup group, Store store, Faults faults, CallRecorder recorder) {
      assertThat(rank).isEqualTo(group.rank());
      assertThat(faults.isKilled(rank)).isFalse();
      assertThat(prepared).as("BeforeEach runs once").isEqualTo(1);
      shared.incrementAndGet();
      group.barrier();
      assertThat(shared).as("ranks share an instance, runs do not").hasValue(group.size());
      store.set("from " + rank, "x");
      store.await(List.of("from 0", "from 1"), Duration.ofMinutes(3));
      Tensor tensor = Tensor.of(rank + 1f);
      group.allReduce(tensor);
      assertThat(tensor.getDouble(0)).isEqualTo(group.size() * (group.size() + 1) / 2.0);
      assertThat(recorder.calls(rank)).hasSize(2);
    }
  }

  @Test
  void aSeedFindsARaceAndRepeatsItAlone() {
    Execution execution = Execution.of(Racing.class);
    List<String> failed =
        execution.names().stream()
            .filter(name -> !execution.status(name).equals(SUCCESSFUL))
            .toList();
    assertThat(failed)
        .isNotEmpty()
        .hasSizeLessThan(Racing.SEEDS)
        .noneMatch(name -> name.contains("again"));
    Throwable thrown = execution.thrownBy(failed.getFirst());
    String seed = failed.getFirst().replaceAll(".*seed=|]", "");
    assertThat(thrown).isInstanceOf(AssertionError.class).hasMessageContaining("2");
    assertThat(thrown.getSuppressed())
        .extracting(Throwable::getMessage)
        .contains(
            "run seed %s alone: mvn test -Dtest='Racing#bothAdd' -Dtutti.seed=%s"
                .formatted(seed, seed));
    System.setProperty("tutti.seed", seed);
    try {
      Execution alone = Execution.of(Racing.class);
      assertThat(alone.names()).containsExactly(failed.getFirst(), seedAgain(failed.getFirst()));
      assertThat(alone.thrownBy(failed.getFirst())).hasMessage(thrown.getMessage());
    } finally {
      System.clearProperty("tutti.seed");
    }
  }

  private static String seedAgain(String name) {
    return name.replace("]", ", again]");
  }

  static class Racing {
    static final int SEEDS = 20;

    @World(seeds = SEEDS)
    void bothAdd(ProcessGroup group, Store store) {
      if (group.rank() == 0) {
        store.set("count", "0");
      }
      group.barrier();
      int count = Integer.parseInt(new String(store.get("count"), StandardCharsets.US_ASCII));
      store.set("count", Integer.toString(count + 1));
      group.barrier();
      assertThat(new String(store.get("count"), StandardCharsets.US_ASCII)).isEqualTo("2");
    }
  }

  @Test
  void aTestThatOtherThingsDecideIsNoticed() {
    Execution execution = Execution.of(Forgetful.class);
    assertThat(execution.status("sleepsLonger [size=2, seed=0]")).isEqualTo(SUCCESSFUL);
    assertThat(execution.thrownBy("sleepsLonger [size=2, seed=0, again]"))
        .hasMessageStartingWith("seed 0 took ")
        .hasMessageContaining("something else than the seed decides");
  }

  static class Forgetful {
    static int barriers;

    @World(seeds = 1)
    void sleepsLonger(ProcessGroup group, @Rank int rank) {
      if (rank == 0) {
        barriers++;
      }
      group.barrier();
      for (int i = 0; i < barriers; i++) {
        group.barrier();
      }
    }
  }

  @Test
  void deadlinesOfMinutesPassInSimulatedTime() {
    assertThat(Execution.of(Waiting.class).failures()).isEmpty();
  }

  static class Waiting {
    @World(size = 3, seeds = 5, timeoutSeconds = 10_000)
    void theRankThatDoesNotComeIsNamed(ProcessGroup group, @Rank int rank, Faults faults) {
      group.setTimeout(Duration.ofMinutes(10));
      faults.partition(Set.of(1), Set.of(0, 2));
      assertThatThrownBy(group::barrier)
          .isInstanceOf(CollectiveTimeoutException.class)
          .hasMessageContaining(rank == 1 ? "barrier" : "rank 1");
    }
  }

  @Test
  void atTheDeadlineStacksAndFlightRecordsAreReported() {
    assertThat(Execution.of(Hanging.class).thrownBy("hangs [size=2, seed=0]"))
        .isInstanceOf(WorldTimeoutException.class)
        .hasMessageContaining("rank-1")
        .hasMessageContaining(
            " s; in no call of Tutti: rank 1 at dev.tutti.testing.WorldSeedsTest$Hanging.hangs(")
        .hasMessageContaining("flight record")
        .hasMessageContaining("allReduce");
  }

  static class Hanging {
    @World(seeds = 1, timeoutSeconds = 5)
    void hangs(ProcessGroup group) throws InterruptedException {
      group.allReduce(Tensor.of(1f));
      if (group.rank() == 1) {
        new CountDownLatch(1).await();
      }
    }
  }

  @Test
  void whatCannotBeSimulatedIsRefused() {
    assertThat(Execution.of(OnGloo.class).failures().toString())
        .contains("a @World with seeds simulates ranks on backend 'threaded', not on 'fake'");
    assertThat(Execution.of(InProcesses.class).failures().toString())
        .contains("simulates ranks on backend 'threaded', not separate processes");
    assertThat(Execution.of(Negative.class).failures().toString())
        .contains("seeds of a @World must be at least 0, not -1");
    assertThat(Execution.inParallel(Beside.class).failures().toString())
        .contains(
            "Beside has a @World with seeds, and tests run in parallel: annotate it with"
                + " @Isolated");
  }

  static class OnGloo {
    @World(seeds = 1, backends = "fake")
    void runs() {}
  }

  static class InProcesses {
    @World(seeds = 1, processes = true)
    void runs() {}
  }

  static class Negative {
    @World(seeds = -1)
    void runs() {}
  }
}

/** Worlds with seeds that no other test must disturb. */
class Beside {
  @World(seeds = 1)
  void runs() {}
}
