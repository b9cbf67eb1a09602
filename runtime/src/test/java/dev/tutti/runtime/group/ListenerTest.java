package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.GroupListener;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.runtime.operation.Listeners;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that misbehaving listeners disturb neither order nor deadlines. */
@Timeout(300)
class ListenerTest {
  private static GroupListener before(Consumer<GroupListener.OpEvent> action) {
    return new GroupListener() {
      @Override
      public void before(OpEvent event) {
        action.accept(event);
      }
    };
  }

  private static GroupListener after(Runnable action) {
    return new GroupListener() {
      @Override
      public void after(OpEvent event, Outcome outcome) {
        action.run();
      }
    };
  }

  @Test
  @SuppressWarnings("try") // it is closed twice
  void aRegistrationEndsOnce() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      List<Long> heard = new CopyOnWriteArrayList<>();
      GroupListener listener = before(event -> heard.add(event.sequenceNumber()));
      Registration first = group.addListener(listener);
      Registration second = group.addListener(listener);
      group.allReduce(Tensor.of(1f));
      first.close();
      first.close();
      group.allReduce(Tensor.of(1f));
      second.close();
      group.allReduce(Tensor.of(1f));
      assertThat(heard).containsExactly(1L, 1L, 2L);
    }
  }

  @Test
  void anEventHasARootIfTheOperationHas() {
    try (ProcessGroup group = new ScriptedProvider().alone()) {
      List<OptionalInt> roots = new CopyOnWriteArrayList<>();
      group.addListener(before(event -> roots.add(event.root())));
      group.allReduce(Tensor.of(1f));
      group.broadcast(Tensor.of(1f), 0);
      assertThat(roots).containsExactly(OptionalInt.empty(), OptionalInt.of(0));
    }
  }

  @Test
  void anErrorOfAListenerIsOnlyLogged() {
    ScriptedProvider provider = new ScriptedProvider();
    try (LocalWorld.Quiet _ = LocalWorld.quiet(Listeners.class);
        ProcessGroup group = provider.alone()) {
      group.addListener(
          before(
              event -> {
                throw new AssertionError("thrown before");
              }));
      group.addListener(
          after(
              () -> {
                throw new AssertionError("thrown after");
              }));
      group.allReduce(Tensor.of(1f));
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      work.await();
      assertThat(work.isSuccess()).isTrue();
      assertThat(group.sequenceNumber()).isEqualTo(2);
    }
  }

  @Test
  void aListenerThatBlocksDoesNotBlockAbort() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    try (ProcessGroup group = provider.alone()) {
      group.addListener(
          before(
              event -> {
                entered.countDown();
                try {
                  release.await(200, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              }));
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      CompletableFuture<Void> caller =
          LocalWorld.async(
              () ->
                  thrown.set(
                      catchThrowable(
                          () ->
                              group
                                  .allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC)
                                  .await())));
      entered.await();
      CompletableFuture<Void> aborter =
          LocalWorld.async(
              () -> {
                group.abort("enough");
                assertThat(group.sequenceNumber()).isEqualTo(1);
              });
      aborter.get(60, TimeUnit.SECONDS);
      LocalWorld.until("the failure", () -> group.failure().isPresent());
      release.countDown();
      caller.get(60, TimeUnit.SECONDS);
      assertThat(thrown.get()).hasMessageContaining("enough");
    }
  }

  @Test
  void anOperationIssuedByAListenerComesAfterTheOneThatItHearsOf() {
    ScriptedProvider provider = new ScriptedProvider();
    List<Long> ran = new CopyOnWriteArrayList<>();
    provider.allReduce = (op, tensor) -> ran.add(op.sequenceNumber());
    for (CallOptions options : List.of(CallOptions.ASYNC, CallOptions.DEFAULT)) {
      ran.clear();
      try (ProcessGroup group = provider.alone()) {
        AtomicReference<Work> nested = new AtomicReference<>();
        group.addListener(
            before(
                event -> {
                  if (event.sequenceNumber() == 1) {
                    nested.set(group.allReduce(Tensor.of(2f), ReduceOp.SUM, CallOptions.ASYNC));
                  }
                }));
        group.allReduce(Tensor.of(1f), ReduceOp.SUM, options).await();
        nested.get().await();
        assertThat(ran).containsExactly(1L, 2L);
      }
    }
  }

  @Test
  void aListenerThatWaitsForItsOwnGroupIsRefused() {
    ScriptedProvider provider = new ScriptedProvider();
    for (CallOptions options : List.of(CallOptions.ASYNC, CallOptions.DEFAULT)) {
      try (ProcessGroup group = provider.alone()) {
        AtomicReference<Throwable> refusal = new AtomicReference<>();
        group.addListener(
            before(
                event -> {
                  if (event.sequenceNumber() == 1) {
                    refusal.set(catchThrowable(() -> group.allReduce(Tensor.of(2f), ReduceOp.SUM)));
                  }
                }));
        group.allReduce(Tensor.of(1f), ReduceOp.SUM, options).await();
        assertThat(refusal.get())
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("listener");
        assertThat(group.sequenceNumber()).isEqualTo(1);
      }
    }
  }

  /** The caller may see that another thread has ended its operation before that thread is done. */
  @Test
  void eachEndIsHeardOnce() throws InterruptedException {
    ScriptedProvider provider = new ScriptedProvider();
    BlockingQueue<Operation> posted = new LinkedBlockingQueue<>();
    Thread ender =
        Thread.ofPlatform()
            .daemon()
            .start(
                () -> {
                  try {
                    while (true) {
                      posted.take().complete();
                    }
                  } catch (InterruptedException e) {
                    // The test is over.
                  }
                });
    provider.recv = (op, tensor, peer) -> posted.add(op);
    provider.await =
        (op, deadline) -> {
          while (!op.isDone()) {
            Thread.onSpinWait();
          }
          return true;
        };
    AtomicInteger ends = new AtomicInteger();
    int receives = 0;
    try (ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "5s")) {
      group.addListener(after(ends::incrementAndGet));
      Tensor tensor = Tensor.of(1f);
      // On a busy machine each exchange between two threads takes a time slice of another process.
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
      while (receives < 20_000 && System.nanoTime() - end < 0) {
        group.recv(tensor, 1);
        receives++;
      }
      ender.interrupt();
      ender.join();
      // Queued after everything that the listeners' thread was given.
      CountDownLatch last = new CountDownLatch(1);
      provider.recv = (op, to, peer) -> Thread.ofPlatform().daemon().start(op::complete);
      group.addListener(after(last::countDown));
      group.recv(tensor, 1, 0, CallOptions.ASYNC);
      LocalWorld.until("the last has arrived", () -> last.getCount() == 0);
    }
    assertThat(ends).hasValue(receives + 1);
  }

  @Test
  void aListenerMayCloseTheGroup() {
    for (boolean inAfter : new boolean[] {true, false}) {
      ScriptedProvider provider = new ScriptedProvider();
      List<String> calls = new CopyOnWriteArrayList<>();
      provider.allReduce = (op, tensor) -> calls.add("run");
      provider.close = () -> calls.add("close");
      ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "10m");
      group.addListener(inAfter ? after(group::close) : before(event -> group.close()));
      Throwable thrown = catchThrowable(() -> group.allReduce(Tensor.of(1f)));
      assertThat(group.isClosed()).isTrue();
      if (inAfter) {
        assertThat(thrown).isNull();
        assertThat(calls).containsExactly("run", "close");
      } else {
        assertThat(thrown).hasMessageContaining("closed");
        assertThat(calls).containsExactly("close");
      }
    }
  }

  @Test
  void aFutureMayCloseTheGroup() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "30s");
    group
        .allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC)
        .toCompletableFuture()
        .thenRun(group::close)
        .get(60, TimeUnit.SECONDS);
    assertThat(group.isClosed()).isTrue();
  }

  @Test
  void theEndOfASynchronousCallIsHeardOnItsThreadAlsoWhenItQueued() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch go = new CountDownLatch(1);
    provider.allReduce =
        (op, tensor) -> {
          if (op.sequenceNumber() == 1) {
            go.await(60, TimeUnit.SECONDS);
          }
        };
    try (ProcessGroup group = provider.alone()) {
      AtomicReference<Thread> heardOn = new AtomicReference<>();
      Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      group.addListener(after(() -> heardOn.set(Thread.currentThread())));
      CompletableFuture<Void> helper =
          LocalWorld.async(
              () -> {
                LocalWorld.until("the queued call", () -> group.sequenceNumber() == 2);
                go.countDown();
              });
      group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT);
      assertThat(heardOn).hasValue(Thread.currentThread());
      first.await();
      helper.get(60, TimeUnit.SECONDS);
    }
  }

  @Test
  void aListenerThatBlocksInAfterDoesNotKeepOtherWorksFromFailing() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch aborted = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    provider.abort = cause -> aborted.countDown();
    provider.allReduce =
        (op, tensor) -> {
          aborted.await(200, TimeUnit.SECONDS);
          throw new IllegalStateException("aborted");
        };
    try (ProcessGroup group = provider.alone()) {
      Work running = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      group.addListener(
          after(
              () -> {
                try {
                  release.await(200, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              }));
      CompletableFuture<Void> synchronous =
          LocalWorld.async(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT));
      LocalWorld.until("two operations", () -> group.sequenceNumber() == 2);
      Work last = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      group.abort("enough");
      assertThatThrownBy(() -> last.await(Duration.ofSeconds(60))).hasMessageContaining("enough");
      assertThatThrownBy(() -> running.await(Duration.ofSeconds(60)))
          .hasMessageContaining("enough");
      release.countDown();
      assertThatThrownBy(() -> synchronous.get(60, TimeUnit.SECONDS))
          .hasMessageContaining("enough");
      assertThat(group.failure().orElseThrow())
          .hasMessageContaining("group 0 failed: this rank aborted the group: enough");
    }
  }

  @Test
  void theBytesOfASparseTensorAreThoseOfWhatItHolds() {
    List<Long> bytes = new ArrayList<>();
    try (ProcessGroup group = new ScriptedProvider().alone()) {
      group.addListener(before(event -> bytes.add(event.byteCount())));
      Tensor values = Tensor.of(1f, 2f, 3f);
      Tensor indices = Tensor.of(0L, 5L, 9L).view(1, 3);
      group.allReduce(Tensor.sparse(indices, values, 1L << 40));
    }
    assertThat(bytes).containsExactly(3 * 8 + 3 * 4L);
  }
}
