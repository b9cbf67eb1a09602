package dev.tutti.runtime.operation;

import dev.tutti.spi.Call;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Says what to run.
 *
 * @param call what the caller asked for
 * @param backend where
 * @param staging what the backend is asked for in its place
 * @param timeout deadline from now; null takes the group's
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
