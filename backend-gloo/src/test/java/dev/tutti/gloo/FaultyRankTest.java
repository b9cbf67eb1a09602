package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.store.HashStore;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Lets one of four ranks do something that the others do not expect: all ranks learn which rank it
 * is, in time.
 */
class FaultyRankTest {
  private static final int SIZE = 4;
  private static final int ODD = 2;
  private static final int COUNT = 1000;
  private static final Duration SHORT = Duration.ofSeconds(1);

  private static final int MOST_RUNS = 4;

  /**
   * Longer than any rank needs to learn of a failure, and shorter than its own timeout would take.
   */
  private static final Duration SLACK = GlooWorld.TIMEOUT.dividedBy(2);

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

  /** A run in which an operation runs out of time. */
  private interface Attempt {
    /** Returns false if a rank called so late that the run proves nothing. */
    boolean isPunctual(Duration timeout) throws Exception;
  }

  /** Makes an attempt, and further ones, each with four times more time, until it is punctual. */
  private static void repeat(Attempt attempt) throws Exception {
    Duration timeout = SHORT;
    for (int run = 1; !attempt.isPunctual(timeout); run++) {
      assertThat(run).as("runs in which a rank called late").isLessThan(MOST_RUNS);
      timeout = timeout.multipliedBy(4);
    }
  }

  private static void open(CountDownLatch latch) throws InterruptedException {
    assertThat(latch.await(GlooWorld.TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
  }

  private <T> List<T> run(Way way, GlooWorld.Body<T> body) throws Exception {
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
    "SOCKETS, LONGER",
    "SOCKETS, MUCH_LONGER",
    "SOCKETS, OTHER_OPERATION",
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
    assertThat(run(way, group -> failureOf(group, fault)))
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

  private static Throwable failureOf(ProcessGroup group, Fault fault) {
    long start = System.nanoTime();
    Throwable failure =
        catchThrowable(
            () -> {
              if (group.rank() == ODD) {
                fault.run(group);
              } else {
                group.allReduce(Tensor.allocate(DType.FLOAT32, COUNT));
              }
              // A rank from which no other rank needs anything learns of the failure only in the
              // next operation.
              group.barrier();
            });
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(SLACK);
    return failure;
  }

  @ParameterizedTest
  @CsvSource({"SOCKETS", "MEMORY", "TWO_LEVELS"})
  void aLateRankIsNamedOnAllRanks(Way way) throws Exception {
    repeat(timeout -> isNamedOnAllRanks(way, timeout));
  }

  /** Returns false if a rank besides the late one was itself late. */
  private boolean isNamedOnAllRanks(Way way, Duration timeout) throws Exception {
    CountDownLatch failed = new CountDownLatch(SIZE - 1);
    AtomicLong firstCall = new AtomicLong(Long.MAX_VALUE);
    AtomicLong lastCall = new AtomicLong();
    long origin = System.nanoTime();
    List<Throwable> thrown =
        run(
            way,
            group -> {
              if (group.rank() == ODD) {
                open(failed);
                return catchThrowable(() -> group.allReduce(Tensor.of(1f)));
              }
              Tensor tensor = Tensor.of(1f);
              CallOptions options = CallOptions.timeout(timeout);
              long start = System.nanoTime();
              firstCall.accumulateAndGet(start - origin, Math::min);
              lastCall.accumulateAndGet(start - origin, Math::max);
              Throwable failure =
                  catchThrowable(() -> group.allReduce(tensor, ReduceOp.SUM, options).await());
              failed.countDown();
              long end = System.nanoTime();
              // A rank that begins after the others learns of their timeout before its own expires.
              assertThat(Duration.ofNanos(end - origin)).isGreaterThan(timeout);
              assertThat(Duration.ofNanos(end - start)).isLessThan(timeout.plus(SLACK));
              return failure;
            });
    if (Duration.ofNanos(lastCall.get() - firstCall.get()).compareTo(timeout.dividedBy(2)) > 0) {
      return false;
    }
    for (int rank = 0; rank < SIZE; rank++) {
      assertThat(thrown.get(rank))
          .isInstanceOf(rank == ODD ? CollectiveException.class : CollectiveTimeoutException.class)
          .hasMessageContaining("rank " + ODD);
      if (rank != ODD) {
        assertThat(((CollectiveException) thrown.get(rank)).failedRank()).hasValue(ODD);
      }
    }
    return true;
  }

  /** Lets a rank be rejected and close its group, as it does at the end of a {@code try}. */
  @ParameterizedTest
  @CsvSource({"SOCKETS", "MEMORY", "TWO_LEVELS"})
  void ranksThatWaitForARefusedOneLearnWhy(Way way) throws Exception {
    List<Throwable> thrown = run(way, FaultyRankTest::failureBesideARefusal);
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

  private static Throwable failureBesideARefusal(ProcessGroup group) {
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
  @CsvSource({"SOCKETS", "MEMORY", "TWO_LEVELS"})
  void aTimeoutIsThatOfTheOperationThatHadIt(Way way) throws Exception {
    repeat(timeout -> timesOutInTheMiddle(way, timeout));
  }

  /** Returns false if the timeout expired before the last of three operations was issued. */
  private boolean timesOutInTheMiddle(Way way, Duration timeout) throws Exception {
    CountDownLatch failed = new CountDownLatch(1);
    return run(
            way,
            group -> {
              if (group.rank() != 0) {
                open(failed);
                return true;
              }
              try {
                return timesOutInTheMiddle(group, timeout);
              } finally {
                failed.countDown();
              }
            })
        .getFirst();
  }

  private static boolean timesOutInTheMiddle(ProcessGroup group, Duration timeout) {
    Work message = group.recv(Tensor.of(1f), ODD, 0, CallOptions.ASYNC);
    long start = System.nanoTime();
    Work late =
        group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC.withTimeout(timeout));
    Work behind;
    try {
      behind = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
    } catch (CollectiveException e) {
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThan(timeout);
      return false;
    }
    Throwable first = catchThrowable(late::await);
    assertThat(first)
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("allReduce failed: this rank timed out in allReduce #2")
        .hasCauseInstanceOf(TimeoutException.class);
    assertThat(late.state()).isEqualTo(WorkState.TIMED_OUT);
    for (Work other : List.of(message, behind)) {
      assertThatThrownBy(other::await)
          .isExactlyInstanceOf(CollectiveException.class)
          .hasMessageContaining("failed: this rank timed out in allReduce #2")
          .hasNoCause();
      assertThat(other.state()).isEqualTo(WorkState.FAILED);
    }
    assertThatThrownBy(group::barrier)
        .isExactlyInstanceOf(CollectiveException.class)
        .hasMessageContaining("the group had already failed: this rank timed out in allReduce");
    return true;
  }

  @Test
  void aBatchThatTimesOutShowsEachExceptionOnce() throws Exception {
    repeat(timeout -> aBatchTimesOut(timeout));
  }

  /** Returns false if the timeout expired before the last of the batch was issued. */
  private boolean aBatchTimesOut(Duration timeout) throws Exception {
    CountDownLatch failed = new CountDownLatch(1);
    return run(
            Way.MEMORY,
            group -> {
              // Otherwise other ranks may fail first, each in its own way.
              if (group.rank() != 0) {
                open(failed);
                return true;
              }
              try {
                return aBatchTimesOut(group, timeout);
              } finally {
                failed.countDown();
              }
            })
        .getFirst();
  }

  private static boolean aBatchTimesOut(ProcessGroup group, Duration timeout) {
    long start = System.nanoTime();
    Throwable thrown =
        catchThrowable(
            () ->
                group
                    .batch()
                    .allReduce(Tensor.of(1f), ReduceOp.SUM)
                    .recv(Tensor.of(1f), ODD, 0)
                    .withTimeout(timeout)
                    .run());
    if (String.valueOf(thrown).contains("refused because the group had already failed")) {
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThan(timeout);
      return false;
    }
    assertThat(thrown).isInstanceOf(CollectiveTimeoutException.class);
    StringWriter trace = new StringWriter();
    thrown.printStackTrace(new PrintWriter(trace));
    assertThat(trace.toString())
        .contains("Suppressed: ", ": recv failed: ")
        .doesNotContain("CIRCULAR");
    return true;
  }

  @Test
  void aRankThatDoesNotComeToTheGroupIsNamed() throws Exception {
    Duration timeout = SHORT;
    while (!isMissedAtTheRendezvous(timeout)) {
      timeout = timeout.multipliedBy(4);
    }
  }

  /** Returns false if one of the ranks that come was so late that the other one missed it, too. */
  private static boolean isMissedAtTheRendezvous(Duration timeout) throws Exception {
    HashStore store = new HashStore();
    long origin = System.nanoTime();
    List<Throwable> thrown =
        GlooWorld.inParallel(
            2,
            rank -> {
              GroupOptions options =
                  GlooWorld.options(store, rank, 3, GlooWorld.settings()).withTimeout(timeout);
              long start = System.nanoTime();
              Throwable failure = catchThrowable(() -> ProcessGroup.init(options));
              long end = System.nanoTime();
              // A rank that begins after the other learns of that one's timeout.
              assertThat(Duration.ofNanos(end - origin)).isGreaterThan(timeout.minusMillis(50));
              assertThat(Duration.ofNanos(end - start)).isLessThan(timeout.plus(SLACK));
              return failure;
            });
    boolean misses =
        thrown.stream().anyMatch(each -> String.valueOf(each).matches("(?s).*ranks [01], 2.*"));
    if (misses) {
      return false;
    }
    assertThat(thrown)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContaining("rank 2"));
    return true;
  }
}
