package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ThreadedWorldTest {
  private static List<String> rankThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(Thread::isAlive)
        .map(Thread::getName)
        .filter(name -> name.startsWith("rank-"))
        .toList();
  }

  @Test
  void runsTheBodyOncePerRank() {
    List<String> results =
        ThreadedWorld.call(
            4,
            group -> {
              Tensor tensor = Tensor.of(group.rank() + 1f, 10f);
              group.allReduce(tensor, ReduceOp.SUM);
              return Thread.currentThread().getName()
                  + " of "
                  + group.size()
                  + " "
                  + group.backends()
                  + " "
                  + tensor.flatDouble(0)
                  + " "
                  + tensor.flatDouble(1);
            });
    assertThat(results)
        .containsExactly(
            "rank-0 of 4 {cpu=threaded} 10.0 40.0",
            "rank-1 of 4 {cpu=threaded} 10.0 40.0",
            "rank-2 of 4 {cpu=threaded} 10.0 40.0",
            "rank-3 of 4 {cpu=threaded} 10.0 40.0");
    assertThat(rankThreads()).isEmpty();
  }

  @Test
  void theFirstFailureIsThrownAndTheOthersAreSuppressed() {
    AssertionError failure = new AssertionError("wrong sum");
    long start = System.nanoTime();
    Throwable thrown =
        catchThrowable(
            () ->
                ThreadedWorld.run(
                    3,
                    group -> {
                      if (group.rank() == 1) {
                        throw failure;
                      }
                      group.barrier();
                    }));
    assertThat(thrown).isSameAs(failure);
    assertThat(thrown.getSuppressed())
        .hasSize(3)
        .allSatisfy(each -> assertThat(each).isInstanceOf(RankFailure.class));
    assertThat(thrown.getSuppressed()[0]).hasMessage("rank 1 was the first to fail");
    assertThat(List.of(thrown.getSuppressed()[1], thrown.getSuppressed()[2]))
        .extracting(each -> ((RankFailure) each).rank())
        .containsExactlyInAnyOrder(0, 2);
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(10));
    assertThat(rankThreads()).isEmpty();
  }

  @Test
  void aCheckedExceptionIsTheCause() {
    assertThatThrownBy(
            () ->
                ThreadedWorld.run(
                    1,
                    group -> {
                      throw new IOException("no disk");
                    }))
        .isInstanceOf(TuttiException.class)
        .hasMessageContaining("rank 0 failed")
        .hasCauseInstanceOf(IOException.class);
  }

  @Test
  void aFailureEndsBodiesThatWaitElsewhere() {
    CountDownLatch never = new CountDownLatch(1);
    Throwable thrown =
        catchThrowable(
            () ->
                ThreadedWorld.run(
                    2,
                    group -> {
                      if (group.rank() == 0) {
                        throw new IllegalStateException("done for");
                      }
                      never.await();
                    }));
    assertThat(thrown).isInstanceOf(IllegalStateException.class).hasMessage("done for");
    assertThat(thrown.getSuppressed()[1]).hasCauseInstanceOf(InterruptedException.class);
    assertThat(rankThreads()).isEmpty();
  }

  @Test
  void aTimeoutShowsTheStacksOfAllRanks() {
    CountDownLatch never = new CountDownLatch(1);
    AtomicInteger ended = new AtomicInteger();
    assertThatThrownBy(
            () ->
                ThreadedWorld.of(3)
                    .withTimeout(Duration.ofMillis(300))
                    .run(
                        group -> {
                          if (group.rank() == 2) {
                            ended.incrementAndGet();
                            return;
                          }
                          never.await();
                        }))
        .isInstanceOf(WorldTimeoutException.class)
        .hasMessageContaining("ranks 0, 1 of 3 did not end within PT0.3S")
        .hasMessageContaining("\"rank-0\" WAITING")
        .hasMessageContaining("CountDownLatch.await")
        .hasMessageContaining("flight record");
    assertThat(ended).hasValue(1);
    assertThat(rankThreads()).isEmpty();
  }
}
