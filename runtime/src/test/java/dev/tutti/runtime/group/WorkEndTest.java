package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.sun.management.ThreadMXBean;
import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.WaitInterruptedException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests that every work ends exactly once, whatever its backend, tensors and waiters do. */
class WorkEndTest {
  private static final ScriptedProvider.Collective REFUSES =
      (op, tensor) -> {
        throw new UnsupportedOperationException("only on Sundays");
      };

  private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

  @Test
  void aResultThatCannotBeCopiedBackFailsTheWork() throws Exception {
    LocalWorld.run(
        2,
        new LocalProvider(),
        group -> {
          if (group.rank() == 0) {
            group.store().await(List.of("ready"));
            group.send(Tensor.of(1f, 2f), 1);
            group.store().await(List.of("done"));
            return null;
          }
          Work work;
          try (Arena arena = Arena.ofShared()) {
            Tensor strided = Tensor.allocate(arena, DType.FLOAT32, 2, 2).select(1, 0);
            work = group.recv(strided, 0, 0, CallOptions.ASYNC);
          }
          group.store().set("ready", "1");
          assertThat(catchThrowable(() -> work.await(Duration.ofSeconds(60))))
              .isInstanceOf(CollectiveException.class)
              .hasMessageContaining("recv")
              .hasMessageContaining("Already closed");
          assertThat(work.state()).isEqualTo(WorkState.FAILED);
          group.store().set("done", "1");
          return null;
        });
  }

  @Test
  void aResultThatCannotBeCopiedBackFailsTheCall() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      Arena arena = Arena.ofShared();
      Tensor strided = Tensor.allocate(arena, DType.FLOAT32, 2, 2).select(1, 0);
      provider.allReduce = (op, tensor) -> arena.close();
      assertThatThrownBy(() -> group.allReduce(strided))
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("Already closed");
    }
  }

  @Test
  void aBackendThatReportsAFailureAndReturnsHasFailed() {
    for (boolean inline : new boolean[] {true, false}) {
      ScriptedProvider provider = new ScriptedProvider();
      provider.allReduce = (op, tensor) -> op.fail(new IOException("cable pulled"), 0);
      try (ProcessGroup group = provider.alone()) {
        assertThatThrownBy(
                () -> {
                  if (inline) {
                    group.allReduce(Tensor.of(1f), ReduceOp.SUM);
                  } else {
                    group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT);
                  }
                })
            .isInstanceOf(CollectiveException.class)
            .hasMessageContaining("cable pulled");
      }
    }
  }

  @Test
  void aFailureReportedByAnotherThreadWakesTheBackend() {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicReference<Object> seen = new AtomicReference<>();
    provider.allReduce =
        (op, tensor) -> {
          Thread.ofPlatform().daemon().start(() -> op.fail(new IOException("reset by a peer"), -1));
          seen.set(op.parkUntilDone(op.deadlineNanos()));
          op.throwIfFailed();
          throw new AssertionError("did not throw");
        };
    try (ProcessGroup group = provider.alone()) {
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f)))
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("reset by a peer");
      assertThat(seen).as("woken, and not by the deadline").hasValue(true);
    }
  }

  @Test
  void aRefusedCallTakesNoNumberAndDoesNotGoOn() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      provider.allReduce = REFUSES;
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
          .isInstanceOf(UnsupportedOperationException.class);
      assertThat(group.sequenceNumber()).isZero();
      assertThat(group.diagnostics().flightRecord()).contains("FAILED").doesNotContain("RUNNING");
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT))
          .isInstanceOf(UnsupportedOperationException.class);
      assertThat(group.sequenceNumber()).isZero();
      provider.allReduce = (op, tensor) -> {};
      group.allReduce(Tensor.of(1f), ReduceOp.SUM);
      assertThat(group.sequenceNumber()).isEqualTo(1);
    }
  }

  @Test
  void aRefusedCallTakesNoNumberAlsoIfItHadToQueue() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch free = new CountDownLatch(1);
    provider.allReduce = (op, tensor) -> assertThat(free.await(60, TimeUnit.SECONDS)).isTrue();
    provider.broadcast = REFUSES;
    try (ProcessGroup group = provider.alone()) {
      Work first = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      CompletableFuture<Void> second =
          LocalWorld.async(
              () -> thrown.set(catchThrowable(() -> group.broadcast(Tensor.of(1f), 0))));
      LocalWorld.until("the call behind it", () -> group.sequenceNumber() == 2);
      free.countDown();
      second.get(60, TimeUnit.SECONDS);
      assertThat(thrown.get())
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("only on Sundays");
      first.await();
      assertThat(group.sequenceNumber()).isEqualTo(1);
    }
  }

  @Test
  void anAsynchronousCallThatIsRefusedGivesItsNumberToThoseBehindIt() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch free = new CountDownLatch(1);
    provider.broadcast = (op, tensor) -> assertThat(free.await(60, TimeUnit.SECONDS)).isTrue();
    provider.allReduce = REFUSES;
    try (ProcessGroup group = provider.alone()) {
      Work first = group.broadcast(Tensor.of(1f), 0, CallOptions.ASYNC);
      Work refused = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      Work batch = group.batch().allReduce(Tensor.of(1f), ReduceOp.SUM).start();
      Work second = group.broadcast(Tensor.of(1f), 0, CallOptions.ASYNC);
      Work third = group.broadcast(Tensor.of(1f), 0, CallOptions.ASYNC);
      assertThat(List.of(second.sequenceNumber(), third.sequenceNumber())).containsExactly(4L, 5L);
      free.countDown();
      assertRefused(refused);
      assertThat(refused.exception().orElseThrow())
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("only on Sundays");
      assertRefused(batch);
      third.await();
      assertThat(List.of(first, refused, second, third).stream().map(Work::sequenceNumber))
          .containsExactly(1L, 0L, 2L, 3L);
      assertThat(group.sequenceNumber()).isEqualTo(3);
      assertThat(
              Pattern.compile("broadcast\"[^}]*\"collective_seq_id\":([0-9]+)")
                  .matcher(group.diagnostics().flightRecord())
                  .results()
                  .map(found -> found.group(1)))
          .containsExactly("1", "2", "3");
    }
  }

  private static void assertRefused(Work work) {
    for (ThrowingCallable wait :
        List.<ThrowingCallable>of(
            work::await, () -> work.await(Duration.ofSeconds(60)), work::synchronize)) {
      assertThatThrownBy(wait)
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("only on Sundays");
    }
    assertThat(work.toCompletableFuture())
        .failsWithin(60, TimeUnit.SECONDS)
        .withThrowableOfType(ExecutionException.class)
        .havingCause()
        .isInstanceOf(UnsupportedOperationException.class)
        .withMessage("only on Sundays");
    assertThat(work.state()).isEqualTo(WorkState.FAILED);
  }

  @Test
  void aCallThatFailedIsNotedOnce() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce =
        (op, tensor) -> {
          throw new IOException("cable pulled");
        };
    try (ProcessGroup group = provider.alone()) {
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
          .hasMessageContaining("cable pulled");
      assertThat(group.diagnostics().flightRecord())
          .containsOnlyOnce("profiling_name")
          .doesNotContain("RUNNING");
    }
  }

  /**
   * One rank's backend may refuse a call that the others accept, such as one with a tensor on a
   * missing device.
   */
  @Test
  void aCallRefusedOnOneRankLeavesAllCountingAlike() throws Exception {
    ScriptedProvider refusing = new ScriptedProvider();
    refusing.missing = Set.of(OpType.MONITORED_BARRIER);
    List<Long> numbers =
        LocalWorld.ranks(
            2,
            new HashStore(),
            refusing,
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(options)) {
                if (rank == 1) {
                  refusing.allReduce =
                      (op, tensor) -> {
                        throw new UnsupportedOperationException("not here");
                      };
                  for (int i = 0; i < 3; i++) {
                    assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
                        .isInstanceOf(UnsupportedOperationException.class);
                  }
                }
                group.monitoredBarrier(Duration.ofSeconds(60), MissingRanks.ALL);
                return group.sequenceNumber();
              }
            });
    assertThat(numbers).containsExactly(1L, 1L);
  }

  @Test
  void whatABackendDoesNotImplementLeavesTheGroupUsable() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      provider.allReduce = REFUSES;
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("only on Sundays");
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("only on Sundays");
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      assertRefused(work);
      provider.allReduce = (op, tensor) -> {};
      group.allReduce(Tensor.of(1f));
      assertThat(group.failure()).isEmpty();
    }
  }

  @Test
  void timeoutsWithoutEndAreAllowedAndOthersChecked() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      CallOptions options = CallOptions.timeout(FOREVER);
      group.allReduce(Tensor.of(1f), ReduceOp.SUM, options);
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, options.withAsync());
      assertThat(work.await(FOREVER)).isTrue();
      assertThat(group.batch().allReduce(Tensor.of(1f), ReduceOp.SUM).start().await(FOREVER))
          .isTrue();
      group.setTimeout(FOREVER);
      group.allReduce(Tensor.of(1f));
      for (Duration bad : List.of(Duration.ZERO, Duration.ofSeconds(-3))) {
        assertThatThrownBy(
                () -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.timeout(bad)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("timeout must be positive, but is " + bad);
      }
      group.allReduce(Tensor.of(1f));
    }
  }

  @Test
  void aFutureOfOneUserIsNotThatOfAnother() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch go = new CountDownLatch(1);
    provider.allReduce = (op, tensor) -> go.await();
    try (ProcessGroup group = provider.alone()) {
      Tensor tensor = Tensor.of(1f);
      Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
      CompletableFuture<List<Tensor>> impatient = work.toCompletableFuture();
      CompletableFuture<List<Tensor>> patient = work.toCompletableFuture();
      assertThat(impatient.cancel(true)).isTrue();
      assertThat(patient).isNotDone();
      go.countDown();
      assertThat(patient.get(60, TimeUnit.SECONDS)).containsExactly(tensor);
      assertThat(work.toCompletableFuture().get(60, TimeUnit.SECONDS)).containsExactly(tensor);
    }
  }

  @Test
  void anInterruptEndsTheWaitNotTheOperation() {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicReference<Operation> started = new AtomicReference<>();
    provider.recv = (op, tensor, peer) -> started.set(op);
    try (ProcessGroup group = world2(provider)) {
      Work work = group.recv(Tensor.of(0f), 1, 0, CallOptions.ASYNC);
      Thread.currentThread().interrupt();
      assertThatThrownBy(work::await)
          .isInstanceOf(WaitInterruptedException.class)
          .hasMessage(
              "the wait of rank 0/2 for recv #1 of group 0 was interrupted; the operation is"
                  + " still running");
      assertThat(Thread.interrupted()).isTrue();
      assertThat(group.failure()).isEmpty();
      started.get().complete();
      assertThat(started.get().isDone()).isTrue();
    }
  }

  @Test
  void aBackendThatThrowsOnInterruptFailsTheGroupAndKeepsTheFlag() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce = (op, tensor) -> new CountDownLatch(1).await(60, TimeUnit.SECONDS);
    try (ProcessGroup group = provider.alone()) {
      for (int i = 0; i < 1; i++) {
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT))
            .isInstanceOf(CollectiveException.class)
            .hasMessageContaining("InterruptedException");
        assertThat(Thread.interrupted()).isTrue();
      }
    }
    try (ProcessGroup group = provider.alone()) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f)))
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("InterruptedException");
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  @Tag("full")
  void aWorkStuckInItsBackendEndsAndIsNotSpunOn() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    CountDownLatch never = new CountDownLatch(1);
    provider.allReduce = (op, tensor) -> never.await();
    ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms");
    Work work =
        group.allReduce(
            Tensor.of(1f), ReduceOp.SUM, CallOptions.timeout(Duration.ofMillis(100)).withAsync());
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Group internals = ((DefaultProcessGroup) group).group;
    Thread.ofPlatform().daemon().start(() -> letTimePass(internals, Duration.ofSeconds(11)));
    long cpu = threads.getCurrentThreadCpuTime();
    long start = System.nanoTime();
    assertThatThrownBy(work::await).isInstanceOf(CollectiveTimeoutException.class);
    long waited = System.nanoTime() - start;
    assertThat(threads.getCurrentThreadCpuTime() - cpu).isLessThan(waited / 4);
    never.countDown();
    group.close();
  }

  /** Makes the watchdog of a group see time pass, once the group fails. */
  private static void letTimePass(Group group, Duration time) {
    if (!WaitStrategy.until(
        () -> group.failures.verdict() != null,
        System.nanoTime() + TimeUnit.SECONDS.toNanos(60),
        TimeUnit.MILLISECONDS.toNanos(10),
        Time.SYSTEM)) {
      throw new AssertionError("the group does not fail within a minute");
    }
    long _ = group.pending.checkDeadlines(System.nanoTime() + time.toNanos());
  }

  @Test
  void aBackendThatThrowsFromAWaitFailsTheOperation() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.send = (op, tensor, peer) -> {};
    provider.await =
        (op, deadline) -> {
          throw new IllegalStateException("selector closed");
        };
    try (ProcessGroup group = world2(provider)) {
      assertThatThrownBy(() -> group.send(Tensor.of(1f), 1))
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("selector closed");
    }
  }

  static ProcessGroup world2(ScriptedProvider provider) {
    return provider.join(2, "TUTTI_CLOSE_TIMEOUT", "100ms");
  }
}
