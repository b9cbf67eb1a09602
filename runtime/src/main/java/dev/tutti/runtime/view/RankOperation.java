package dev.tutti.runtime.view;

import dev.tutti.OpType;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.util.List;

/**
 * One operation of one rank, as recorded.
 *
 * @param rank the rank among all ranks
 * @param group the name of the group
 * @param call the operation, with the number of elements of its inputs, or of its outputs if there
 *     are no inputs
 * @param peer the other rank of a message, as a rank of the group, or -1
 * @param tag the tag of a message
 * @param path the path that the operation took, or empty
 * @param isCompleted whether the operation has ended without a failure
 * @param startNanos when the operation was called, by the rank's clock; 0 if that is not known
 * @param endNanos when the operation ended; 0 if it has not, or was not timed because it never had
 *     to wait
 * @param isOfTorch whether PyTorch made the record, which contains neither the reduction operator
 *     nor the root, and on Gloo no times
 */
public record RankOperation(
    int rank,
    String group,
    Issued call,
    int peer,
    int tag,
    String path,
    boolean isCompleted,
    long startNanos,
    long endNanos,
    boolean isOfTorch) {
  /** Returns what distinguishes this operation from others. */
  public List<Object> key() {
    return List.of(rank, group, isMessage(), call.sequence());
  }

  public OpType type() {
    return call.type();
  }

  public boolean isMessage() {
    return type().isPointToPoint();
  }

  /** Returns whether {@link #nanos} is the time that the operation took. */
  boolean isTimed() {
    return isCompleted && (endNanos != 0 || !isOfTorch);
  }

  /** Returns whether it never had to wait, so that its start is only the last time known before. */
  public boolean hasNotWaited() {
    return isTimed() && endNanos == 0;
  }

  /** Returns the time that the operation took, or 0 if it was not timed. */
  public long nanos() {
    return endNanos == 0 ? 0 : Math.max(0, endNanos - startNanos);
  }

  public String describe() {
    return isMessage() ? pending().describe() : call.describe();
  }

  Pending pending() {
    return new Pending(type(), call.sequence(), peer, tag);
  }

  /** Returns this operation without the operator and the root, which not all records contain. */
  public RankOperation bare() {
    Issued bare = new Issued(type(), call.sequence(), "", call.dtype(), call.numel(), -1, "");
    return new RankOperation(
        rank, group, bare, peer, tag, path, isCompleted, startNanos, endNanos, isOfTorch);
  }
}
