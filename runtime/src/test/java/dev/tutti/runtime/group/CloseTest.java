package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.GroupClosedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what close fails, and that a backend is closed once nothing runs in it any more. */
@Timeout(300)
class CloseTest {
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
}
