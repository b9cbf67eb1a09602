package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.failure.SlowReports;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the warnings about operations that wait for long. */
@Timeout(300)
@Order(1)
class SlowOperationsTest {
  private static final String SLOW = "100ms";

  /** Attempts are repeated only if they say so. */
  private static final Duration ANY = Duration.ofMinutes(10);

  private final LogCapture said = new LogCapture(SlowReports.class);
  private HashStore store = new HashStore();

  interface Role {
    void play(ProcessGroup group) throws Exception;
  }

  @AfterEach
  void deafen() {
    said.close();
  }

  private void play(ScriptedProvider provider, Role... roles) throws Exception {
    playWith(SLOW, provider, roles);
  }

  /** Runs one role per rank; the ranks close once all roles have ended. */
  private void playWith(String slow, ScriptedProvider provider, Role... roles) throws Exception {
    CountDownLatch ended = new CountDownLatch(roles.length);
    LocalWorld.ranks(
        roles.length,
        store,
        provider,
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(withSlow(options, slow))) {
            roles[rank].play(group);
            LocalWorld.endTogether(ended);
            return rank;
          }
        });
  }

  private static GroupOptions withSlow(GroupOptions options, String slow) {
    return options
        .withTimeout(Duration.ofMinutes(4))
        .withSettings(
            Settings.ofEnvironment(Map.of("TUTTI_SLOW", slow, "TUTTI_CLOSE_TIMEOUT", "10s")));
  }

  /** Returns a provider whose collectives end when the given number of ranks have come. */
  private static ScriptedProvider meeting(int size) {
    CyclicBarrier barrier = new CyclicBarrier(size);
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce = (op, tensor) -> barrier.await(240, TimeUnit.SECONDS);
    return provider;
  }

  private void linger(String... parts) {
    LocalWorld.until(String.join(", ", parts), () -> said.has(parts));
  }

  @Test
  void allThatWaitNameTheRankThatHasNotComeAndWhereItIs() throws Exception {
    Role waiting =
        group -> {
          group.allReduce(Tensor.of(1f));
          group.allReduce(Tensor.of(1f));
        };
    play(
        meeting(3),
        waiting,
        waiting,
        group -> {
          group.allReduce(Tensor.of(1f));
          for (int r = 0; r < 2; r++) {
            String line =
                ("rank %d/3, group 0: allReduce #2 has waited for \\d+ s; "
                        + "rank 2 has not called it \\(its last collective was #1\\); "
                        + "its thread pool-\\d+-thread-\\d+ is at .*")
                    .formatted(r);
            LocalWorld.until(line, () -> said.matches(line));
          }
          group.allReduce(Tensor.of(1f));
        });
  }

  @Test
  void ranksThatNeverJoinedAreListedTogether() throws Exception {
    LocalWorld.ranks(
        3,
        store,
        meeting(2),
        (options, rank) -> {
          if (rank == 0) {
            try (ProcessGroup group = ProcessGroup.init(withSlow(options, SLOW))) {
              Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
              linger("ranks 1, 2 cannot be asked, having never joined through this store");
              group.abort("seen");
              assertThat(work).isNotNull();
            }
          }
          return rank;
        });
  }

  @Test
  void aQuestionIsNoFailure() throws Exception {
    play(
        meeting(2),
        group -> group.allReduce(Tensor.of(1f)),
        group -> {
          linger("rank 0/2", "rank 1 has not called it");
          assertThat(JobMonitor.hasFailed(store, "tutti/0/")).isFalse();
          assertThat(store.check(List.of("tutti/0/event/1"))).isTrue();
          assertThat(FailureLog.blame(store, 0)).isEmpty();
          group.allReduce(Tensor.of(1f));
          assertThat(group.failure()).isEmpty();
        });
  }

  @Test
  void aFailureAfterAQuestionIsFound() throws Exception {
    play(
        meeting(2),
        group -> {
          group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
          LocalWorld.until("the failure", () -> group.failure().isPresent());
        },
        group -> {
          linger("rank 0/2", "rank 1 has not called it");
          group.abort("enough");
          LocalWorld.until("the failure", () -> group.failure().isPresent());
        });
    assertThat(JobMonitor.hasFailed(store, "tutti/0/")).isTrue();
    assertThat(FailureLog.blame(store, 0).orElseThrow().rank()).isEqualTo(1);
  }

  @Test
  void aReceiveNamesThePeerAndWhatThatWaitsIn() throws Exception {
    ScriptedProvider deaf = new ScriptedProvider();
    deaf.recv = (op, tensor, peer) -> {};
    Role quit = group -> LocalWorld.until("the failure", () -> group.failure().isPresent());
    play(
        deaf,
        group -> {
          group.recv(Tensor.of(0f), 1, 7, CallOptions.ASYNC);
          linger(
              "rank 0/3, group 0: recv #1 from rank 1, tag 7 has waited for",
              "rank 1 did not send in time; it waits in recv #1 from rank 2, tag 8,"
                  + " rank 2 did not send in time; its thread pool-");
          group.abort("enough");
        },
        group -> {
          group.recv(Tensor.of(0f), 2, 8, CallOptions.ASYNC);
          quit.play(group);
        },
        quit);
  }

  @Test
  void severalMessagesAreOneLine() throws Exception {
    LocalWorld.attempt(ANY, this::receiveSeveral);
  }

  private void receiveSeveral() throws Exception {
    said.records.clear();
    store = new HashStore();
    AtomicBoolean together = new AtomicBoolean();
    ScriptedProvider deaf = new ScriptedProvider();
    deaf.recv = (op, tensor, peer) -> {};
    playWith(
        "800ms",
        deaf,
        group -> {
          long start = System.nanoTime();
          for (int i = 0; i < 5; i++) {
            group.recv(Tensor.of(0f), 1, i, CallOptions.ASYNC);
          }
          // What begins within an eighth of the time is reported together.
          together.set(System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(50));
          if (together.get()) {
            linger("rank 0/2", "recv #1 from rank 1, tag 0", "and so have 4 more messages");
          }
          group.abort("enough");
        },
        group -> LocalWorld.until("the failure", () -> group.failure().isPresent()));
    if (!together.get()) {
      throw new LocalWorld.BusyException("the messages did not begin together");
    }
  }

  @Test
  void aRankThatClosedIsNamed() throws Exception {
    LocalWorld.attempt(ANY, this::waitForARankThatClosed);
  }

  private void waitForARankThatClosed() throws Exception {
    said.records.clear();
    store = new HashStore();
    CountDownLatch closed = new CountDownLatch(1);
    AtomicBoolean isPublished = new AtomicBoolean();
    play(
        meeting(2),
        group -> {
          Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
          assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
          // A rank that closes tries for no longer than a second.
          isPublished.set(store.check(List.of("tutti/0/progress/0/1")));
          if (isPublished.get()) {
            linger("rank 0/2", "rank 1 closed the group (it has called no collective so far)");
          }
          work.abort();
        },
        group -> {
          group.close();
          closed.countDown();
        });
    if (!isPublished.get()) {
      throw new LocalWorld.BusyException("the other rank could not say in time that it closed");
    }
  }

  @Test
  void itIsSaidAgainAndZeroSaysNothing() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    ScriptedProvider slow = new ScriptedProvider();
    slow.allReduce = (op, tensor) -> end.await(240, TimeUnit.SECONDS);
    try (ProcessGroup silent = slow.alone("TUTTI_SLOW", "0");
        ProcessGroup group = slow.alone("TUTTI_SLOW", SLOW)) {
      // Other classes, which run at the same time, make no broadcast that takes long.
      Work other = silent.broadcast(Tensor.of(1f), 0, CallOptions.ASYNC);
      Work work = group.barrier(CallOptions.ASYNC);
      LocalWorld.until("three lines", () -> said.count("barrier #1 has waited for") >= 3);
      end.countDown();
      work.await();
      other.await();
    }
    assertThat(said.all()).doesNotContain("broadcast");
  }

  @Test
  void whatEndsInTimeIsNotSaid() throws Exception {
    ScriptedProvider quick = new ScriptedProvider();
    CountDownLatch end = new CountDownLatch(1);
    int calls = 0;
    try (ProcessGroup group = quick.alone("TUTTI_SLOW", SLOW)) {
      boolean isInTime = false;
      while (calls < 1000 || !isInTime) {
        long start = System.nanoTime();
        group.allReduce(Tensor.of(1f));
        calls++;
        isInTime = System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(50);
      }
      quick.allReduce = (op, tensor) -> end.await(60, TimeUnit.SECONDS);
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      linger("allReduce #" + (calls + 1) + " ");
      end.countDown();
      work.await();
    }
    assertThat(said.all()).doesNotContain("allReduce #" + calls + " ");
  }
}
