package dev.tutti.cli.trace;

import dev.tutti.OpType;
import java.util.List;

/**
 * One operation of one rank, as a record tells it.
 *
 * @param rank among all
 * @param group its name
 * @param type what it is
 * @param sequence its number among the group's collectives or the rank's messages
 * @param dtype type of its elements, or empty
 * @param numel how many elements the rank brought
 * @param sizes of its inputs, in words
 * @param reduceOp what reduces, or empty
 * @param root the root of a collective or peer of a message, or -1
 * @param path that it took, or empty
 * @param state completed, started or scheduled
 * @param startNanos when it was called, by the rank's clock
 * @param endNanos when it ended; 0 if it has not, or was not timed as it never had to wait
 * @param isOfTorch whether PyTorch recorded it, which tells neither what reduces nor the root, and
 *     on Gloo no times
 */
record TraceEntry(
    int rank,
    String group,
    OpType type,
    long sequence,
    String dtype,
    long numel,
    String sizes,
    String reduceOp,
    int root,
    String path,
    String state,
    long startNanos,
    long endNanos,
    boolean isOfTorch) {
  static final String COMPLETED = "completed";

  boolean isMessage() {
    return type.isPointToPoint();
  }

  boolean isCompleted() {
    return state.equals(COMPLETED);
  }

  /** Tells whether {@link #nanos} is how long it took. */
  boolean isTimed() {
    return isCompleted() && (endNanos != 0 || !isOfTorch);
  }

  /** Returns how long it took; 0 if it was not timed. */
  long nanos() {
    return endNanos == 0 ? 0 : Math.max(0, endNanos - startNanos);
  }

  String describe() {
    return type.label() + " #" + sequence + (dtype.isEmpty() ? "" : " " + dtype + sizes);
  }

  /** Returns it with a number of bytes in place of sizes, and without what events do not tell. */
  TraceEntry withBytes(String newDtype, long bytes) {
    return new TraceEntry(
        rank,
        group,
        type,
        sequence,
        newDtype,
        bytes,
        sizesOf(newDtype, bytes),
        "",
        isMessage() ? root : -1,
        path,
        state,
        startNanos,
        endNanos,
        isOfTorch);
  }

  /** Says how many bytes of a type of elements; nothing without one. */
  static String sizesOf(String dtype, long bytes) {
    return dtype.isEmpty() ? "" : " of " + bytes + " bytes";
  }

  /** Multiplies sizes, for all tensors of a side together. */
  static long numel(List<List<Long>> sizes) {
    return sizes.stream().mapToLong(shape -> shape.stream().reduce(1L, (a, b) -> a * b)).sum();
  }
}
