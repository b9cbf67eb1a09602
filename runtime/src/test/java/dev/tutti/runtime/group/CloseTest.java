package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.GroupClosedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that close is bounded, and that a backend is closed once nothing runs in it any more. */
@Timeout(300)
class CloseTest {
  @Test
  @RepeatedWhenBusy(usualMillis = 3000) // close waits for 4 s
  void theBackendIsClosedAfterTheLastOperationOfAFailedGroup() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    List<String> order = new CopyOnWriteArrayList<>();
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch aborted = new CountDownLatch(1);
    provider.abort = cause -> aborted.countDown();
    provider.close = () -> order.add("close");
    provider.allReduce =
        (op, tensor) -> {
          entered.countDown();
          aborted.await(60, TimeUnit.SECONDS);
          // Simulates a backend that takes a while to release its resources.
          new CountDownLatch(1).await(300, TimeUnit.MILLISECONDS);
          order.add("return");
          throw new IllegalStateException("aborted");
        };
    ProcessGroup group = provider.alone();
    Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
    entered.await();
    group.abort("enough");
    LocalWorld.until("the failure", () -> group.failure().isPresent());
    group.close();
    assertThat(order).containsExactly("return", "close");
    assertThatThrownBy(work::await).hasMessageContaining("enough");
  }

  @Test
  void aWorkStuckInItsBackendEndsWithClose() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch never = new CountDownLatch(1);
    provider.allReduce = (op, tensor) -> never.await(240, TimeUnit.SECONDS);
    ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms");
    Work stuck =
        group.allReduce(
            Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC.withTimeout(Duration.ofMinutes(30)));
    Work queued =
        group.allReduce(
            Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC.withTimeout(Duration.ofMinutes(30)));
    long start = System.nanoTime();
    group.close();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(60));
    for (Work work : List.of(stuck, queued)) {
      assertThat(work.isCompleted()).isTrue();
      assertThatThrownBy(work::await)
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("closed with operations pending");
    }
    never.countDown();
  }

  @Test
  void anInterruptedCloseClosesAllTheSame() {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicBoolean closed = new AtomicBoolean();
    provider.recv = (op, tensor, peer) -> {};
    provider.close = () -> closed.set(true);
    ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "100s");
    Work work = group.recv(Tensor.of(0f), 1, 0, CallOptions.ASYNC);
    Thread.currentThread().interrupt();
    long start = System.nanoTime();
    group.close();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(60));
    assertThat(closed).isTrue();
    assertThat(work.isCompleted()).isTrue();
  }

  @Test
  void aMessageThatNobodySentFailsWithClose() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.recv = (op, tensor, peer) -> {};
    ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "10ms");
    Work work = group.recv(Tensor.of(0f), 1, 7, CallOptions.ASYNC);
    try (WarningCapture warnings = new WarningCapture(Group.class)) {
      group.close();
      assertThat(warnings.messages())
          .containsExactly(
              "rank 0, group 0: the group was closed with operations pending: recv #1 from rank 1,"
                  + " tag 7, which fail");
    }
    assertThat(work.state()).isEqualTo(WorkState.ABORTED);
    assertThatThrownBy(work::await)
        .isInstanceOf(AbortedException.class)
        .hasMessageStartingWith(
            "recv failed: this rank aborted the group: the group was closed with operations"
                + " pending: recv #1 from rank 1, tag 7 [");
  }

  @Test
  void aCloseNamesTheFirstOfMany() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.recv = (op, tensor, peer) -> {};
    ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "10ms");
    for (int i = 0; i < 5; i++) {
      group.recv(Tensor.of(0f), 1, 0, CallOptions.ASYNC);
    }
    try (WarningCapture warnings = new WarningCapture(Group.class)) {
      group.close();
      assertThat(warnings.messages())
          .singleElement()
          .asString()
          .endsWith(
              "pending: recv #1 from rank 1, tag 0; recv #2 from rank 1, tag 0; recv #3 from rank"
                  + " 1, tag 0 and 2 more, which fail");
    }
  }

  @Test
  void nothingStartsInAClosedBackend() throws Exception {
    for (int round = 0; round < 30; round++) {
      ScriptedProvider provider = new ScriptedProvider();
      AtomicBoolean closed = new AtomicBoolean();
      AtomicInteger late = new AtomicInteger();
      provider.close = () -> closed.set(true);
      provider.allReduce = (op, tensor) -> late.addAndGet(closed.get() ? 1 : 0);
      provider.send =
          (op, tensor, peer) -> {
            late.addAndGet(closed.get() ? 1 : 0);
            op.complete();
          };
      ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "100s");
      CountDownLatch running = new CountDownLatch(3);
      CompletableFuture<?>[] callers = {
        LocalWorld.async(() -> untilClosed(running, () -> group.allReduce(Tensor.of(1f)))),
        LocalWorld.async(
            () ->
                untilClosed(
                    running,
                    () -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC))),
        LocalWorld.async(() -> untilClosed(running, () -> group.send(Tensor.of(1f), 1)))
      };
      running.await();
      group.close();
      CompletableFuture.allOf(callers).get(60, TimeUnit.SECONDS);
      assertThat(late).as("round %d", round).hasValue(0);
    }
  }

  private static void untilClosed(CountDownLatch running, Runnable call) {
    call.run();
    running.countDown();
    Throwable thrown;
    do {
      thrown = catchThrowable(call::run);
    } while (thrown == null);
    assertThat(thrown).isInstanceOf(GroupClosedException.class);
  }

  @Test
  void closeIsBoundedWhenTheStoreHangs() throws Exception {
    StuckStore store = new StuckStore();
    LocalWorld.ranks(
        1,
        store.store(),
        new ScriptedProvider(),
        (options, rank) -> {
          ProcessGroup group = ProcessGroup.init(options);
          store.stuck = true;
          long start = System.nanoTime();
          group.close();
          assertThat(Duration.ofNanos(System.nanoTime() - start))
              .isLessThan(Duration.ofSeconds(60));
          store.released.countDown();
          return null;
        });
  }

  @Test
  void subgroupsShareTheTimeForClosing() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.features = new Feature[] {Feature.TAGS};
    provider.recv = (op, tensor, peer) -> {};
    ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "5s");
    List<Work> works = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow();
      works.add(part.recv(Tensor.of(1f), 1, 0, CallOptions.ASYNC));
    }
    long start = System.nanoTime();
    group.close();
    // One after another would take 40 s.
    assertThat(Duration.ofNanos(System.nanoTime() - start))
        .isBetween(Duration.ofSeconds(5), Duration.ofSeconds(35));
    assertThat(works).allMatch(Work::isCompleted);
  }
}
