package dev.tutti.runtime.operation;

import dev.tutti.spi.Call;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * An operation to run.
 *
 * @param call the call that the caller made
 * @param backend the backend that runs it
 * @param staging the call that the backend gets instead
 * @param timeout the deadline from now; null means the group's
 * @param async whether the caller continues at once
 */
public record OperationSpec(
    Call call,
    BoundBackend backend,
    HostStaging staging,
    @Nullable Duration timeout,
    boolean async) {

  public long timeoutNanos(long groupTimeoutNanos) {
    return timeout == null ? groupTimeoutNanos : Deadlines.nanos(timeout);
  }
}
