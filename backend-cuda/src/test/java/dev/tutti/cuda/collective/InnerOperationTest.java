package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.spi.Call;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class InnerOperationTest {
  private final AtomicInteger released = new AtomicInteger();
  private final InnerOperation operation =
      new InnerOperation(
          answering(Operation.class), new Call(OpType.ALL_REDUCE).inPlace(Tensor.of(1f)));

  /**
   * Returns an event that has been reached, or an operation that is only ever asked for its time.
   */
  private <T> T answering(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "awaitReached", "isReached" -> true;
                  case "release" -> {
                    released.incrementAndGet();
                    yield null;
                  }
                  case "deadlineNanos" -> System.nanoTime() + 60_000_000_000L;
                  default -> throw new AssertionError(method);
                }));
  }

  @Test
  void aDeviceThatIsThroughEndsTheWait() throws Exception {
    operation.enqueued(answering(DeviceEvent.class));
    operation.awaitDevice(() -> false);
    assertThat(released).hasValue(1);
  }

  @Test
  void whatAnAbortEndedIsNoResult() {
    operation.enqueued(answering(DeviceEvent.class));
    assertThatThrownBy(() -> operation.awaitDevice(() -> true))
        .isInstanceOf(BackendException.class)
        .hasMessage("the group was aborted");
    assertThat(released).hasValue(1);
  }
}
