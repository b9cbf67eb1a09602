package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.MismatchException;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("threads of other tests in shared locks would bring in real time")
class ThreadedWorldTest {
  /** The deadline of worlds that exceed it. */
  private static final Duration DEADLINE = Duration.ofSeconds(5);

  private final Set<Thread> rankThreads = ConcurrentHashMap.newKeySet();

  private void rankRuns() {
    rankThreads.add(Thread.currentThread());
  }

  private void assertRanksHaveEnded() {
    assertThat(rankThreads).isNotEmpty().noneMatch(Thread::isAlive);
  }

  @Simulated(seeds = 5)
  void runsTheBodyOncePerRank() {
    List<String> results =
        Worlds.simulated(4)
            .call(
                group -> {
                  rankRuns();
                  Tensor tensor = Tensor.of(group.rank() + 1f, 10f);
                  group.allReduce(tensor, ReduceOp.SUM);
                  return Thread.currentThread().getName()
                      + " of "
                      + group.size()
                      + " "
                      + group.backends()
                      + " "
                      + tensor.getDouble(0)
                      + " "
                      + tensor.getDouble(1);
                });
    assertThat(results)
        .containsExactly(
            "rank-0 of 4 {cpu=threaded} 10.0 40.0",
            "rank-1 of 4 {cpu=threaded} 10.0 40.0",
            "rank-2 of 4 {cpu=threaded} 10.0 40.0",
            "rank-3 of 4 {cpu=threaded} 10.0 40.0");
    assertRanksHaveEnded();
  }

  @Simulated(seeds = 5)
  void takesTheLongestTimeout() {
    ThreadedWorld.of(2)
        .withTime(Simulation.time())
        .withTimeout(Duration.ofSeconds(Long.MAX_VALUE))
        .run(ProcessGroup::barrier);
  }

  /** Lets a collective time out while a message with a longer timeout is waiting. */
  @Simulated(seeds = 5)
  void aTimeoutIsThatOfTheOperationThatHadIt() {
    CountDownLatch failed = new CountDownLatch(1);
    Worlds.simulated(2)
        .run(
            group -> {
              if (group.rank() == 1) {
                failed.await();
                return;
              }
              try {
                Work message = group.recv(Tensor.of(1f), 1, 0, CallOptions.ASYNC);
                assertThatThrownBy(
                        () ->
                            group.allReduce(
                                Tensor.of(1f),
                                ReduceOp.SUM,
                                CallOptions.timeout(Duration.ofMillis(300))))
                    .isInstanceOf(CollectiveTimeoutException.class)
                    .hasMessageContaining("allReduce failed: this rank timed out in allReduce #1");
                assertThatThrownBy(message::await)
                    .isExactlyInstanceOf(CollectiveException.class)
                    .hasMessageContaining("recv failed: this rank timed out in allReduce #1");
              } finally {
                failed.countDown();
              }
            });
  }

  @Simulated(seeds = 5)
  void theFirstFailureIsThrownAndTheOthersAreSuppressed() {
    AtomicReference<AssertionError> failure = new AtomicReference<>();
    Throwable thrown =
        catchThrowable(
            () ->
                Worlds.simulated(3)
                    .run(
                        group -> {
                          rankRuns();
                          if (group.rank() == 1) {
                            failure.set(new AssertionError("wrong sum"));
                            throw failure.get();
                          }
                          group.barrier();
                        }));
    assertThat(thrown).isSameAs(failure.get());
    assertThat(thrown.getSuppressed())
        .hasSize(3)
        .allSatisfy(each -> assertThat(each).isInstanceOf(RankFailure.class));
    assertThat(thrown.getSuppressed()[0]).hasMessage("rank 1 was the first to fail");
    assertThat(List.of(thrown.getSuppressed()[1], thrown.getSuppressed()[2]))
        .extracting(each -> ((RankFailure) each).rank())
        .containsExactlyInAnyOrder(0, 2);
    for (Throwable other : List.of(thrown.getSuppressed()[1], thrown.getSuppressed()[2])) {
      assertThat(other)
          .hasNoCause()
          .hasMessageContainingAll(
              " failed: " + PeerFailedException.class.getName(),
              "rank 1 aborted the group",
              "wrong sum");
    }
    // Nobody is interrupted.
    assertThat(Simulation.now().toMillis()).isLessThan(1000);
    assertRanksHaveEnded();
  }

  @Simulated(seeds = 5)
  void aCheckedExceptionIsTheCause() {
    assertThatThrownBy(
            () ->
                Worlds.simulated(1)
                    .run(
                        group -> {
                          throw new IOException("no disk");
                        }))
        .isInstanceOf(TuttiException.class)
        .hasMessageContaining("rank 0 failed")
        .hasCauseInstanceOf(IOException.class);
  }

  @Simulated(seeds = 5)
  void aFailureEndsBodiesThatWaitElsewhere() {
    CountDownLatch never = new CountDownLatch(1);
    Throwable thrown =
        catchThrowable(
            () ->
                Worlds.simulated(2)
                    .run(
                        group -> {
                          rankRuns();
                          if (group.rank() == 0) {
                            throw new IllegalStateException("done for");
                          }
                          never.await();
                        }));
    assertThat(thrown).isInstanceOf(IllegalStateException.class).hasMessage("done for");
    assertThat(thrown.getSuppressed()[1])
        .hasNoCause()
        .hasMessage("rank 1 failed: java.lang.InterruptedException");
    assertThat(((RankFailure) thrown.getSuppressed()[1]).failure())
        .isInstanceOf(InterruptedException.class);
    assertRanksHaveEnded();
  }

  @Simulated(seeds = 5)
  void aTimeoutShowsTheStacksOfAllRanks() {
    CountDownLatch never = new CountDownLatch(1);
    AtomicInteger ended = new AtomicInteger();
    Throwable thrown =
        catchThrowable(
            () ->
                ThreadedWorld.of(3)
                    .withTime(Simulation.time())
                    .withTimeout(DEADLINE)
                    .run(
                        group -> {
                          rankRuns();
                          if (group.rank() == 2) {
                            ended.incrementAndGet();
                            return;
                          }
                          never.await();
                        }));
    assertThat(thrown)
        .isInstanceOf(WorldTimeoutException.class)
        .hasMessageContaining(
            "ranks 0, 1 of 3 did not end within "
                + DEADLINE.toSeconds()
                + " s; in no call of Tutti: rank 0 at dev.tutti.fake.ThreadedWorldTest.")
        .hasMessageContaining(", rank 1 at dev.tutti.fake.ThreadedWorldTest.")
        .hasMessageContaining("\"rank-0\" WAITING")
        .hasMessageContaining("CountDownLatch.await")
        .hasMessageContaining("flight record");
    assertThat(ended).hasValue(1);
    assertRanksHaveEnded();
  }

  @Simulated(seeds = 5)
  void theRankThatFailedByItselfIsReported() {
    for (int i = 0; i < 20; i++) {
      Throwable thrown =
          catchThrowable(
              () ->
                  Worlds.simulated(2)
                      .run(
                          group -> {
                            if (group.rank() == 0) {
                              group.send(Tensor.of(1f, 2f), 1);
                            } else {
                              group.recv(Tensor.of(1L, 2L), 0);
                            }
                          }));
      assertThat(thrown).isExactlyInstanceOf(MismatchException.class);
      CollectiveException failure = (CollectiveException) thrown;
      int first = failure.failedRank().orElse(-1);
      assertThat(failure.rank()).isEqualTo(first);
      assertThat(failure.getStackTrace())
          .anySatisfy(
              frame -> assertThat(frame.getMethodName()).isEqualTo(first == 0 ? "send" : "recv"))
          .anySatisfy(frame -> assertThat(frame.getClassName()).isEqualTo(getClass().getName()));
      assertThat(failure.getSuppressed()).hasSize(2);
      assertThat(failure.getSuppressed()[0]).hasMessage("rank " + first + " was the first to fail");
      // The other rank is notified by the first one, or detects it itself.
      assertThat(failure.getSuppressed()[1])
          .hasMessageMatching(
              "(?s)rank %d failed: dev\\.tutti\\.(Mismatch|PeerFailed)Exception: .*"
                      .formatted(1 - first)
                  + "rank 0 called send #1 float32\\[2].*which called recv #1 int64\\[2].*");
      assertThat(trace(thrown)).doesNotContain("CIRCULAR");
    }
  }

  @Simulated(seeds = 5)
  void aRankThatIsMissedIsNamed() {
    Throwable thrown =
        catchThrowable(
            () ->
                Worlds.simulated(2)
                    .run(
                        group -> {
                          if (group.rank() == 0) {
                            group.setTimeout(Duration.ofMillis(100));
                            group.barrier();
                          } else {
                            new CountDownLatch(1).await();
                          }
                        }));
    assertThat(thrown)
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("first failing rank 1");
    assertThat(thrown.getSuppressed()[0]).hasMessage("rank 0 threw this because of rank 1");
  }

  @Simulated(seeds = 5)
  void aTimeoutSaysOncePerRankWhatItEnded() {
    Throwable thrown =
        catchThrowable(
            () ->
                ThreadedWorld.of(3)
                    .withTime(Simulation.time())
                    .withTimeout(DEADLINE)
                    .withOptions(options -> options.withTimeout(Worlds.PATIENCE))
                    .run(
                        group -> {
                          group.send(Tensor.of(1f), (group.rank() + 1) % 3);
                          group.recv(Tensor.of(1f), (group.rank() + 2) % 3);
                        }));
    assertThat(thrown).isInstanceOf(WorldTimeoutException.class);
    String trace = trace(thrown);
    assertThat(trace).doesNotContain("CIRCULAR").doesNotContain("Caused by");
    String limit = DEADLINE.toSeconds() + " s";
    assertThat(trace.split("the world's deadline of " + limit + " passed", -1)).hasSize(4);
    assertThat(thrown.getMessage()).doesNotContain("in no call of Tutti");
    assertThat(thrown.getSuppressed()).hasSize(3);
    for (Throwable each : thrown.getSuppressed()) {
      assertThat(each).isInstanceOf(RankFailure.class);
      RankFailure failure = (RankFailure) each;
      assertThat(failure)
          .hasMessageStartingWith("rank " + failure.rank() + " failed: dev.tutti.")
          .hasMessageContaining("Exception: send failed: ");
      assertThat(failure.getStackTrace()).isEmpty();
    }
  }

  @Simulated(seeds = 5)
  void anotherRanksOwnFailureKeepsItsFrames() {
    CountDownLatch begun = new CountDownLatch(2);
    Throwable thrown =
        catchThrowable(
            () ->
                Worlds.simulated(2)
                    .run(
                        group -> {
                          Simulation.endTogether(begun);
                          throw new AssertionError("rank " + group.rank() + " is wrong");
                        }));
    int first = thrown.getMessage().equals("rank 0 is wrong") ? 0 : 1;
    assertThat(thrown).hasMessage("rank " + first + " is wrong");
    Throwable other = thrown.getSuppressed()[1];
    assertThat(other)
        .hasNoCause()
        .hasMessage(
            String.format(
                "rank %d failed: java.lang.AssertionError: rank %d is wrong",
                1 - first, 1 - first));
    assertThat(other.getStackTrace()[0].getClassName()).isEqualTo(getClass().getName());
  }

  private static String trace(Throwable thrown) {
    StringWriter text = new StringWriter();
    thrown.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  @Simulated(seeds = 5)
  void ranksThatSetASubgroupUpLearnThatAnotherGaveAnotherList() {
    List<Throwable> failures =
        Worlds.simulated(3)
            .call(
                group -> {
                  boolean isOther = group.rank() == 2;
                  if (isOther) {
                    SimulatedWorld.sleep(Duration.ofSeconds(1));
                  }
                  List<Integer> ranks = isOther ? List.of(0, 2) : List.of(0, 1, 2);
                  Throwable failure = catchThrowable(() -> group.subgroup(ranks));
                  assertThat(Simulation.now()).isEqualTo(Duration.ofSeconds(1));
                  return failure;
                });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isExactlyInstanceOf(CollectiveException.class)
                    .hasMessageContainingAll("gave 0, 1, 2", "rank 2 gave 0, 2"));
  }
}
