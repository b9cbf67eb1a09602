package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import dev.tutti.testing.HeldTime;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Lets one of four ranks do something that the others do not expect: all ranks name that rank, in
 * time. {@link SimulatedFaultyRankTest} does so over simulated networks.
 */
class FaultyRankTest {
  static final int SIZE = 4;
  static final int ODD = 2;
  private static final int COUNT = 1000;
  static final Duration SHORT = Duration.ofSeconds(1);

  /** The medium through which the ranks exchange data. */
  enum Way {
    SOCKETS,
    MEMORY,
    TWO_LEVELS
  }

  /** What one rank does while the others reduce 1000 elements. */
  enum Fault {
    OTHER_TYPE {
      @Override
      void run(ProcessGroup group) {
        group.allReduce(Tensor.allocate(DType.INT32, COUNT));
      }
    },
    LONGER {
      @Override
      void run(ProcessGroup group) {
        group.allReduce(Tensor.allocate(DType.FLOAT32, COUNT + 1));
      }
    },
    MUCH_LONGER {
      @Override
      void run(ProcessGroup group) {
        group.allReduce(Tensor.allocate(DType.FLOAT32, 1000 * COUNT));
      }
    },
    OTHER_OPERATION {
      @Override
      void run(ProcessGroup group) {
        group.broadcast(Tensor.allocate(DType.FLOAT32, COUNT), ODD);
      }
    };

    abstract void run(ProcessGroup group);
  }

  @TempDir Path directory;

  private static void open(CountDownLatch latch) throws InterruptedException {
    assertThat(latch.await(GlooWorld.TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
  }

  private <T> List<T> run(Way way, GlooWorld.Body<T> body) throws Exception {
    return run(way, Time.SYSTEM, body);
  }

  private <T> List<T> run(Way way, Time time, GlooWorld.Body<T> body) throws Exception {
    Settings settings =
        GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), way == Way.SOCKETS ? "0" : "1M");
    int ranksOfHost = way == Way.TWO_LEVELS ? SIZE / 2 : SIZE;
    HostsProvider hosts = new HostsProvider(directory, rank -> rank / ranksOfHost);
    CountDownLatch through = new CountDownLatch(SIZE);
    List<T> results =
        GlooWorld.run(
            SIZE,
            settings,
            hosts,
            time,
            group -> {
              Tensor tensor = Tensor.of(1f);
              group.allReduce(tensor);
              assertThat(tensor.toFloatArray()).containsExactly(SIZE);
              // A failure would also end the first operation of a rank that has not finished it
              // yet.
              through.countDown();
              open(through);
              return body.run(group);
            });
    String expected =
        switch (way) {
          case SOCKETS -> "sockets";
          case MEMORY -> "shared memory";
          case TWO_LEVELS -> "two levels: [0, 1] [2, 3]";
        };
    assertThat(hosts.made()).containsOnly(expected);
    return results;
  }

  @ParameterizedTest
  @CsvSource({
    "SOCKETS, OTHER_TYPE",
    "MEMORY, OTHER_TYPE",
    "MEMORY, LONGER",
    "MEMORY, MUCH_LONGER",
    "MEMORY, OTHER_OPERATION",
    "TWO_LEVELS, OTHER_TYPE",
    "TWO_LEVELS, LONGER",
    "TWO_LEVELS, MUCH_LONGER",
    "TWO_LEVELS, OTHER_OPERATION"
  })
  void anOddRankIsNamedOnAllRanks(Way way, Fault fault) throws Exception {
    assertDisagreement(run(way, group -> failureOf(group, fault)));
  }

  static void assertDisagreement(List<Throwable> failures) {
    assertThat(failures)
        .hasSize(SIZE)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageContaining("ranks disagree")
                    .hasMessageContaining("rank " + ODD)
                    .hasMessageContaining("called allReduce #2 float32[1000]")
                    .message()
                    .doesNotContain("gone", "rank -1", "IllegalState"));
  }

  static Throwable failureOf(ProcessGroup group, Fault fault) {
    return catchThrowable(
        () -> {
          if (group.rank() == ODD) {
            fault.run(group);
          } else {
            group.allReduce(Tensor.allocate(DType.FLOAT32, COUNT));
          }
          // A rank from which no other rank needs anything is notified of the failure only in the
          // next operation.
          group.barrier();
        });
  }

  @ParameterizedTest
  @EnumSource(names = {"MEMORY", "TWO_LEVELS"})
  void aLateRankIsNamedOnAllRanks(Way way) throws Exception {
    HeldTime time = new HeldTime();
    CountDownLatch called = new CountDownLatch(SIZE - 1);
    CountDownLatch failed = new CountDownLatch(SIZE - 1);
    List<Throwable> thrown =
        run(
            way,
            time,
            group -> {
              if (group.rank() == ODD) {
                open(failed);
                return catchThrowable(() -> group.allReduce(Tensor.of(1f)));
              }
              time.hold();
              long start = time.nanoTime();
              Work work =
                  group.allReduce(
                      Tensor.of(1f), ReduceOp.SUM, CallOptions.timeout(SHORT).withAsync());
              called.countDown();
              open(called);
              time.release();
              Throwable failure = catchThrowable(work::await);
              failed.countDown();
              assertThat(Duration.ofNanos(time.nanoTime() - start)).isGreaterThanOrEqualTo(SHORT);
              return failure;
            });
    assertLate(thrown);
  }

  static void assertLate(List<Throwable> thrown) {
    for (int rank = 0; rank < SIZE; rank++) {
      assertThat(thrown.get(rank))
          .isInstanceOf(rank == ODD ? CollectiveException.class : CollectiveTimeoutException.class)
          .hasMessageContaining("rank " + ODD);
      if (rank != ODD) {
        assertThat(((CollectiveException) thrown.get(rank)).failedRank()).hasValue(ODD);
      }
    }
  }

  /** Lets a rank be rejected and close its group, as it does at the end of a {@code try}. */
  @ParameterizedTest
  @EnumSource(names = {"MEMORY", "TWO_LEVELS"})
  void ranksThatWaitForARefusedOneLearnWhy(Way way) throws Exception {
    assertRefusal(run(way, FaultyRankTest::failureBesideARefusal));
  }

  static void assertRefusal(List<Throwable> thrown) {
    thrown.remove(ODD);
    assertThat(thrown)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(PeerFailedException.class)
                    .hasMessageContaining("rank " + ODD + " closed its group, while ")
                    .hasMessageContaining(
                        "; its last call was refused: broadcast on rank 2/4 of group 0: root must"
                            + " be a rank in 0..3, not 4")
                    .extracting(e -> ((CollectiveException) e).failedRank())
                    .isEqualTo(OptionalInt.of(ODD)));
  }

  static Throwable failureBesideARefusal(ProcessGroup group) {
    if (group.rank() != ODD) {
      return catchThrowable(() -> group.broadcast(Tensor.of(1f), ODD));
    }
    assertThatThrownBy(() -> group.broadcast(Tensor.of(1f), SIZE))
        .isInstanceOf(IllegalArgumentException.class);
    return null;
  }

  /**
   * Lets a collective time out while a message and another collective with longer timeouts wait.
   */
  @ParameterizedTest
  @EnumSource(names = {"MEMORY", "TWO_LEVELS"})
  void aTimeoutIsThatOfTheOperationThatHadIt(Way way) throws Exception {
    HeldTime time = new HeldTime();
    runOnRankZero(
        way,
        time,
        group -> {
          time.hold();
          List<Work> works = startThree(group);
          time.release();
          assertSecondTimesOut(group, works);
        });
  }

  /** Runs a body on rank 0, whose group fails first. */
  private void runOnRankZero(Way way, HeldTime time, Consumer<ProcessGroup> body) throws Exception {
    CountDownLatch failed = new CountDownLatch(1);
    run(
        way,
        time,
        group -> {
          if (group.rank() != 0) {
            // Otherwise other ranks may fail first, each in its own way.
            open(failed);
            return true;
          }
          try {
            body.accept(group);
          } finally {
            failed.countDown();
          }
          return true;
        });
  }

  /** Starts a message, a collective with a short timeout and another collective. */
  static List<Work> startThree(ProcessGroup group) {
    return List.of(
        group.recv(Tensor.of(1f), ODD, 0, CallOptions.ASYNC),
        group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC.withTimeout(SHORT)),
        group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC));
  }

  static void assertSecondTimesOut(ProcessGroup group, List<Work> works) {
    Work late = works.get(1);
    Throwable first = catchThrowable(late::await);
    assertThat(first)
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("allReduce failed: this rank timed out in allReduce #2")
        .hasCauseInstanceOf(TimeoutException.class);
    assertThat(late.state()).isEqualTo(WorkState.TIMED_OUT);
    for (Work other : List.of(works.getFirst(), works.getLast())) {
      assertThatThrownBy(other::await)
          .isExactlyInstanceOf(CollectiveException.class)
          .hasMessageContaining("failed: this rank timed out in allReduce #2")
          .hasNoCause();
      assertThat(other.state()).isEqualTo(WorkState.FAILED);
    }
    assertThatThrownBy(group::barrier)
        .isExactlyInstanceOf(CollectiveException.class)
        .hasMessageContaining("the group had already failed: this rank timed out in allReduce");
  }

  @Test
  void aBatchThatTimesOutShowsEachExceptionOnce() throws Exception {
    HeldTime time = new HeldTime();
    runOnRankZero(Way.MEMORY, time, group -> aBatchTimesOut(group, time));
  }

  private static void aBatchTimesOut(ProcessGroup group, HeldTime time) {
    time.hold();
    Work batch =
        group
            .batch()
            .allReduce(Tensor.of(1f), ReduceOp.SUM)
            .recv(Tensor.of(1f), ODD, 0)
            .withTimeout(SHORT)
            .start();
    time.release();
    Throwable thrown = catchThrowable(batch::await);
    assertThat(thrown).isInstanceOf(CollectiveTimeoutException.class);
    StringWriter trace = new StringWriter();
    thrown.printStackTrace(new PrintWriter(trace));
    assertThat(trace.toString())
        .contains("Suppressed: ", ": recv failed: ")
        .doesNotContain("CIRCULAR");
  }
}
