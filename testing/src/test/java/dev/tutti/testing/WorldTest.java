package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.TestExecutionResult.Status.ABORTED;

import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.fake.CallRecorder;
import dev.tutti.fake.Faults;
import dev.tutti.fake.RankFailure;
import dev.tutti.testkit.Execution;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.parallel.ResourceAccessMode;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.opentest4j.TestAbortedException;

@ResourceLock(value = "shared memory that worlds leave", mode = ResourceAccessMode.READ)
@World(timeoutSeconds = 200)
class WorldTest {

  @Test
  void sizesAndBackendsMultiply() {
    Matrix.BODIES.clear();
    Execution execution = Execution.of(Matrix.class);
    assertThat(execution.failures()).isEmpty();
    assertThat(execution.names())
        .containsExactlyInAnyOrder(
            "matrix [size=1, backend=threaded]",
            "matrix [size=1, backend=fake]",
            "matrix [size=3, backend=threaded]",
            "matrix [size=3, backend=fake]");
    assertThat(Matrix.BODIES)
        .containsExactlyInAnyOrder(
            "fake 0/1",
            "fake 0/3",
            "fake 1/3",
            "fake 2/3",
            "threaded 0/1",
            "threaded 0/3",
            "threaded 1/3",
            "threaded 2/3");
  }

  static class Matrix {
    static final Set<String> BODIES = new ConcurrentSkipListSet<>();

    @World(
        sizes = {1, 3},
        backends = {"threaded", "fake"})
    void matrix(ProcessGroup group) {
      BODIES.add(group.backends().get("cpu") + " " + group.rank() + "/" + group.size());
    }
  }

  @Test
  void ranksGetTheirOwnParameters() {
    assertThat(Execution.of(Parameters.class).failures()).isEmpty();
  }

  static class Parameters {
    private final AtomicInteger shared = new AtomicInteger();
    private int prepared;

    @BeforeEach
    void prepare() {
      prepared++;
    }

    @World(size = 3)
    void parameters(
        @Rank int rank,
        ProcessGroup group,
        TestInfo info,
        Store store,
        Faults faults,
        CallRecorder recorder) {
      assertThat(rank).isEqualTo(group.rank());
      assertThat(Thread.currentThread().getName()).isEqualTo("rank-" + rank);
      assertThat(info.getDisplayName()).isEqualTo("parameters [size=3, backend=threaded]");
      assertThat(faults.isKilled(rank)).isFalse();
      assertThat(prepared).as("BeforeEach runs once").isEqualTo(1);
      shared.incrementAndGet();
      store.set("from " + rank, "x");
      store.await(List.of("from 0", "from 1", "from 2"), Duration.ofMinutes(3));
      assertThat(shared).as("the instance is shared").hasValue(3);
      Tensor tensor = Tensor.of((float) rank);
      group.allReduce(tensor);
      assertThat(tensor.getDouble(0)).isEqualTo(3);
      assertThat(recorder.calls(rank)).hasSize(1);
    }
  }

  @Test
  void methodsTakeWhatTheirClassSays() {
    Execution execution = Execution.of(Defaults.class);
    assertThat(execution.failures()).isEmpty();
    assertThat(execution.names())
        .containsExactlyInAnyOrder(
            "inherits [size=3, backend=fake]",
            "overrides [size=2, backend=fake]",
            "replaces [size=3, backend=threaded]",
            "nested [size=3, backend=fake]");
  }

  @World(size = 3, backends = "fake", timeoutSeconds = 200)
  static class Defaults {
    @World
    void inherits(@Rank int rank) {
      assertThat(rank).isBetween(0, 2);
    }

    @World(size = 2)
    void overrides(@Rank int rank) {
      assertThat(rank).isBetween(0, 1);
    }

    @World(backends = "threaded")
    void replaces() {}

    @org.junit.jupiter.api.Nested
    class Inner {
      @World
      void nested() {}
    }
  }

  @Test
  void aFailingRankEndsTheOthersAndIsTheOneReported() {
    Throwable thrown = Execution.of(Failing.class).thrownBy("oneFails [size=4, backend=threaded]");
    assertThat(thrown).isInstanceOf(AssertionError.class).hasMessage("rank 2 does not like this");
    List<Throwable> suppressed = Arrays.asList(thrown.getSuppressed());
    assertThat(suppressed).hasOnlyElementsOfType(RankFailure.class);
    assertThat(suppressed.get(0)).hasMessageContaining("rank 2");
    // A rank is notified by rank 2, or by its world, which waits for half a second.
    assertThat(suppressed.subList(1, suppressed.size()))
        .hasSize(3)
        .allSatisfy(
            other ->
                assertThat(other)
                    .hasNoCause()
                    .hasMessageContaining(" failed: dev.tutti.")
                    .hasMessageContaining("rank 2 does not like this"));
  }

  static class Failing {
    @World(size = 4)
    void oneFails(ProcessGroup group) {
      group.barrier();
      if (group.rank() == 2) {
        throw new AssertionError("rank 2 does not like this");
      }
      group.barrier();
    }
  }

  @Test
  void skippedTestsTellTheirReason() {
    Execution execution = Execution.of(Skipping.class);
    String assumption = "assumes [size=2, backend=threaded]";
    assertThat(execution.status(assumption)).isEqualTo(ABORTED);
    assertThat(execution.thrownBy(assumption)).hasMessageContaining("no such hardware");
    String unusable = "wants [size=2, backend=unusable]";
    assertThat(execution.status(unusable)).isEqualTo(ABORTED);
    assertThat(execution.thrownBy(unusable))
        .hasMessage("backend 'unusable' cannot run here: it is for tests");
  }

  static class Skipping {
    @World
    void assumes(ProcessGroup group) {
      if (group.rank() == 1) {
        throw new TestAbortedException("no such hardware");
      }
      group.barrier();
    }

    @World(backends = "unusable")
    void wants() {}
  }

  @Test
  void mistakesAreExplained() {
    Execution execution = Execution.of(Mistaken.class);
    assertThat(execution.thrownBy("unknown [size=2, backend=nosuch]"))
        .isInstanceOf(ExtensionConfigurationException.class)
        .hasMessageContaining("nosuch")
        .hasMessageContaining("threaded");
    assertThat(execution.thrownBy("rankType [size=2, backend=threaded]"))
        .isInstanceOf(ParameterResolutionException.class)
        .hasMessageContaining("must be an int");
    assertThat(execution.thrownBy("plain(ProcessGroup)"))
        .isInstanceOf(ParameterResolutionException.class)
        .hasMessageContaining("annotate plain with @World");
    assertThat(execution.thrownBy("faultsOfProcesses [size=2, backend=fake, processes]"))
        .isInstanceOf(ExtensionConfigurationException.class)
        .hasMessageContaining("Faults");
  }

  @Test
  void numbersThatAreNotPositiveAreRefused() {
    assertThat(Execution.of(NoRank.class).failures().toString())
        .contains("the size of a @World must be at least 1, not 0");
    assertThat(Execution.of(NegativeSizes.class).failures().toString())
        .contains("sizes of a @World must be at least 1, not -1");
    assertThat(Execution.of(NoTime.class).failures().toString())
        .contains("timeoutSeconds of a @World must be more than 0, not 0.0");
    assertThat(Execution.of(NegativeTime.class).failures().toString())
        .contains("timeoutSeconds of a @World must be more than 0, not -2.0");
  }

  static class NoRank {
    @World(size = 0)
    void runs() {}
  }

  static class NegativeSizes {
    @World(sizes = {1, -1})
    void runs() {}
  }

  static class NoTime {
    @World(timeoutSeconds = 0)
    void runs() {}
  }

  static class NegativeTime {
    @World(timeoutSeconds = -2)
    void runs() {}
  }

  @World
  static class Mistaken {
    @World(backends = "nosuch")
    void unknown() {}

    @World
    void rankType(@Rank long rank) {}

    @Test
    void plain(ProcessGroup group) {}

    @World(backends = "fake", processes = true)
    void faultsOfProcesses(Faults faults) {}
  }

  @Test
  void faultsReachTheRanks() {
    assertThat(Execution.of(Faulty.class).failures()).isEmpty();
  }

  static class Faulty {
    @World(size = 3)
    void survivorsNameTheKilledRank(ProcessGroup group, Faults faults) {
      group.barrier();
      if (group.rank() == 1) {
        faults.kill(1);
      }
      assertThat(org.assertj.core.api.Assertions.catchThrowable(group::barrier))
          .isNotNull()
          .satisfies(
              thrown -> {
                if (group.rank() != 1) {
                  assertThat(thrown)
                      .isInstanceOf(PeerFailedException.class)
                      .extracting(failure -> ((PeerFailedException) failure).failedRank())
                      .isEqualTo(OptionalInt.of(1));
                }
              });
    }

    @World(size = 2)
    void failOnFails(ProcessGroup group, Faults faults) {
      faults.failOn(OpType.ALL_REDUCE, 1);
      assertThat(
              org.assertj.core.api.Assertions.catchThrowable(() -> group.allReduce(Tensor.of(1f))))
          .hasMessageContaining("set to fail");
    }
  }

  @Test
  @Tag("full")
  void threadsThatOutliveTheirWorldFailTheClass() {
    Leaking.end = new CountDownLatch(1);
    try {
      CompletableFuture<Execution> older =
          CompletableFuture.supplyAsync(
              () -> Execution.inOlderJunit(Leaking.class),
              command -> Thread.ofPlatform().start(command));
      for (Execution execution : List.of(Execution.of(Leaking.class), older.join())) {
        assertThat(execution.thrownAfter(Leaking.class))
            .hasMessageContaining("threads that outlive their groups")
            .hasMessageContaining("forgotten");
      }
    } finally {
      Leaking.end.countDown();
    }
  }

  static class Leaking {
    static volatile CountDownLatch end = new CountDownLatch(1);

    @World
    void leaks(@Rank int rank) {
      if (rank == 1) {
        Thread.ofPlatform()
            .daemon()
            .name("forgotten")
            .start(
                () -> {
                  try {
                    end.await();
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
      }
    }
  }

  @Test
  void worldsRunBesideEachOther() {
    Execution execution = Execution.inParallel(Matrix.class, Parameters.class, Many.class);
    assertThat(execution.failures()).isEmpty();
  }

  static class Many {
    private static final AtomicInteger ENDED = new AtomicInteger();

    @World(sizes = {1, 2, 3, 4, 2, 3})
    void many(ProcessGroup group) {
      for (int i = 0; i < 20; i++) {
        Tensor tensor = Tensor.of(1f);
        group.allReduce(tensor);
        assertThat(tensor.getDouble(0)).isEqualTo(group.size());
      }
      ENDED.incrementAndGet();
    }

    @AfterAll
    static void all() {
      assertThat(ENDED).hasValue(15);
      ENDED.set(0);
    }
  }
}
