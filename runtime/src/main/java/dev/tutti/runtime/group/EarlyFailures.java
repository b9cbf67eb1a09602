package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.StoreClosedException;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.SetUpFailure;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.spi.BackendContext;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Keeps the first failure that a backend reports before its group exists, and ends set-up. */
final class EarlyFailures implements BackendContext.FailureListener {
  private final Runnable end;
  private final SetUpFailure setUp;
  private @Nullable Group group;
  private @Nullable Throwable cause;
  private int rank;

  EarlyFailures(Runnable end, SetUpFailure setUp) {
    this.end = end;
    this.setUp = setUp;
  }

  @Override
  public void failed(Throwable newCause, int failedRank) {
    Group target;
    synchronized (this) {
      target = group;
      if (target == null && cause == null) {
        cause = newCause;
        rank = failedRank;
      }
    }
    if (target != null) {
      target.peerFailed(newCause, failedRank);
    } else if (Blame.mayBeExplained(newCause)) {
      setUp.explain(newCause);
    } else {
      end.run();
    }
  }

  /**
   * Returns the failure that a backend reported if it closed the stores of a set-up, or else the
   * exception.
   */
  synchronized RuntimeException causeOf(RuntimeException e) {
    if (cause == null || !hasClosedStore(e)) {
      return e;
    }
    BackendException reported = new BackendException(OperationState.textOf(cause), cause);
    reported.addSuppressed(e);
    return reported;
  }

  private static boolean hasClosedStore(Throwable e) {
    return Stream.iterate(e, Objects::nonNull, Throwable::getCause)
        .anyMatch(StoreClosedException.class::isInstance);
  }

  /** Passes on what was kept, and all that follows, to a group. */
  void tell(Group newGroup) {
    Throwable early;
    synchronized (this) {
      group = newGroup;
      early = cause;
    }
    if (early != null) {
      newGroup.peerFailed(early, rank);
    }
  }
}
