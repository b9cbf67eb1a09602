package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PendingOperationsTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long POLL = TimeUnit.MILLISECONDS.toNanos(10);

  private final OperationOwner owner =
      (OperationOwner)
          Proxy.newProxyInstance(
              OperationOwner.class.getClassLoader(),
              new Class<?>[] {OperationOwner.class},
              (proxy, method, arguments) -> {
                return switch (method.getName()) {
                  case "timeoutNanos" -> 10 * SECOND;
                  case "identity" ->
                      new GroupIdentity(
                          "0", 0, List.of(0), Settings.ofEnvironment(Map.of()), Time.SYSTEM);
                  default -> throw new AssertionError("unexpected call of " + method);
                };
              });

  /** The JVM's clock may overflow while operations wait, so the earliest time is not the least. */
  @Test
  void theNextLookIsTheEarliestAlsoIfTheClockOverflows() {
    PendingOperations pending = new PendingOperations(owner, List.of(), 0);
    for (long now : new long[] {5 * SECOND, Long.MAX_VALUE - SECOND / 2, Long.MIN_VALUE + 1}) {
      assertThat(pending.checkDeadlines(now) - now).isEqualTo(SECOND);
    }
    long now = Long.MAX_VALUE - SECOND / 2;
    GroupOperation op = pending.onStream.next();
    op.issue(1, now, now + 10 * SECOND, WorkState.RUNNING);
    pending.onStream.add();
    assertThat(pending.checkDeadlines(now) - now).isEqualTo(POLL);
  }
}
