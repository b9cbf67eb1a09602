package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.shared.NeverEvent;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Tests that a failure reaches every work. */
class FailureTest {
  /**
   * Lets a backend end a message with the failure of its collective, like a backend that stops
   * everything. It does so before the deadline, after which the watchdog might come first.
   */
  @Test
  void whatEndedACollectiveIsNotTheCauseOfAMessage() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicReference<Operation> receive = new AtomicReference<>();
    provider.recv = (op, tensor, peer) -> receive.set(op);
    provider.allReduce =
        (op, tensor) -> {
          TimeoutException late = new TimeoutException("nobody came");
          op.fail(late, -1);
          receive.get().fail(late, -1);
          throw late;
        };
    LocalWorld.ranks(
        1,
        new HashStore(),
        provider,
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(options.withSize(2))) {
            Work message = group.recv(Tensor.of(1f), 1, 0, CallOptions.ASYNC);
            assertThatThrownBy(
                    () -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT))
                .isInstanceOf(CollectiveTimeoutException.class)
                .hasCauseInstanceOf(TimeoutException.class);
            assertThatThrownBy(message::await)
                .isExactlyInstanceOf(CollectiveException.class)
                .hasMessageContaining("this rank timed out in allReduce #1: nobody came")
                .hasNoCause();
            assertThat(message.state()).isEqualTo(WorkState.FAILED);
          }
          return null;
        });
  }

  @Test
  void theFailureOfAGroupSaysWhichOperationFailed() {
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.alone()) {
      group.allReduce(Tensor.of(1f));
      provider.allReduce =
          (op, tensor) -> {
            throw new IllegalStateException("burnt");
          };
      assertThatThrownBy(group::barrier).hasMessageContaining("burnt");
      TuttiException failure = group.failure().orElseThrow();
      assertThat(failure).isInstanceOf(CollectiveException.class);
      assertThat(((CollectiveException) failure).opType()).isEqualTo(OpType.BARRIER);
      assertThat(((CollectiveException) failure).sequenceNumber()).isEqualTo(2);
      assertThat(((CollectiveException) failure).failedRank()).hasValue(0);
    }
  }

  @Test
  void anOperationEnqueuedWhileTheGroupFailsEnds() throws Exception {
    for (int round = 0; round < 30; round++) {
      ScriptedProvider provider = new ScriptedProvider();
      provider.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
      ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms");
      CountDownLatch torn = new CountDownLatch(1);
      provider.abort = cause -> torn.countDown();
      provider.allReduce =
          (op, tensor) -> {
            group.abort("meanwhile");
            torn.await(60, TimeUnit.SECONDS);
            op.enqueued(new NeverEvent(Time.SYSTEM));
          };
      Throwable thrown = null;
      try {
        Work work =
            group.allReduce(
                Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC.withTimeout(Duration.ofMinutes(10)));
        assertThat(work.toCompletableFuture()).failsWithin(Duration.ofSeconds(60));
      } catch (AbortedException e) {
        thrown = e;
      }
      assertThat(thrown == null || thrown.getMessage().contains("meanwhile")).isTrue();
      group.close();
    }
  }

  @Test
  void aDeviceThatFailsToAnswerDoesNotStopTheWatchdog() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
    provider.allReduce =
        (op, tensor) ->
            op.enqueued(
                new DeviceEvent() {
                  @Override
                  public boolean isReached() {
                    throw new UnsatisfiedLinkError("no driver");
                  }

                  @Override
                  public void orderCurrentStream() {}

                  @Override
                  public boolean awaitReached(long deadlineNanos) {
                    throw new UnsatisfiedLinkError("no driver");
                  }
                });
    try (ProcessGroup broken = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms")) {
      Work work = broken.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      assertThat(work.toCompletableFuture()).failsWithin(Duration.ofSeconds(60));
    }
    ScriptedProvider other = new ScriptedProvider();
    other.recv = (op, tensor, peer) -> {};
    try (ProcessGroup group = other.join(2)) {
      Work work =
          group.recv(Tensor.of(1f), 1, 0, CallOptions.timeout(Duration.ofMillis(100)).withAsync());
      assertThat(work.toCompletableFuture()).failsWithin(Duration.ofSeconds(60));
      assertThat(work.state()).isEqualTo(WorkState.TIMED_OUT);
    }
  }
}
