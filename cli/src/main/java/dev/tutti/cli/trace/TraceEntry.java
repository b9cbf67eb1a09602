package dev.tutti.cli.trace;

import dev.tutti.DType;
import dev.tutti.OpType;
import java.util.Arrays;
import java.util.List;

/**
 * One operation of one rank, as recorded.
 *
 * @param rank the rank among all ranks
 * @param group the name of the group
 * @param type the type of the operation
 * @param sequence the number of the operation among the group's collectives or the rank's messages
 * @param dtype the type of the elements, or empty
 * @param numel the number of elements of the inputs, or of the outputs if there are no inputs
 * @param sizes the sizes of the same tensors, in words
 * @param parts how many elements each rank gives or gets, as {@code RankProgress.parts} describes
 *     it; or empty
 * @param reduceOp the reduction operator, or empty
 * @param root the root of a collective or the peer of a message, or -1
 * @param path the path that the operation took, or empty
 * @param state the state: completed, started or scheduled
 * @param startNanos when the operation was called, by the rank's clock
 * @param endNanos when the operation ended; 0 if it has not, or was not timed because it never had
 *     to wait
 * @param isOfTorch whether PyTorch made the record, which contains neither the reduction operator
 *     nor the root, and on Gloo no times
 */
record TraceEntry(
    int rank,
    String group,
    OpType type,
    long sequence,
    String dtype,
    long numel,
    String sizes,
    String parts,
    String reduceOp,
    int root,
    String path,
    String state,
    long startNanos,
    long endNanos,
    boolean isOfTorch) {
  static final String COMPLETED = "completed";

  /** Returns what tells this operation from others. */
  List<Object> key() {
    return List.of(rank, group, isMessage(), sequence);
  }

  boolean isMessage() {
    return type.isPointToPoint();
  }

  boolean isCompleted() {
    return state.equals(COMPLETED);
  }

  /** Returns the number of elements, also where an event has the number of their bytes. */
  long elements() {
    return Arrays.stream(DType.values())
        .filter(type -> type.label().equals(dtype))
        .mapToLong(type -> numel / type.byteSize())
        .findFirst()
        .orElse(numel);
  }

  /** Tells whether {@link #nanos} is the time that the operation took. */
  boolean isTimed() {
    return isCompleted() && (endNanos != 0 || !isOfTorch);
  }

  /** Returns the time that the operation took, or 0 if it was not timed. */
  long nanos() {
    return endNanos == 0 ? 0 : Math.max(0, endNanos - startNanos);
  }

  String describe() {
    return type.label() + " #" + sequence + (dtype.isEmpty() ? "" : " " + dtype + sizes);
  }

  /**
   * Returns this entry with a number of bytes in place of sizes, and without what events do not
   * contain.
   */
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
        "",
        isMessage() ? root : -1,
        path,
        state,
        startNanos,
        endNanos,
        isOfTorch);
  }

  /** Describes a number of bytes of an element type; returns an empty string without a type. */
  static String sizesOf(String dtype, long bytes) {
    return dtype.isEmpty() ? "" : " of " + bytes + " bytes";
  }

  /** Returns the number of elements of all tensors together. */
  static long numel(List<List<Long>> sizes) {
    return sizes.stream().mapToLong(shape -> shape.stream().reduce(1L, (a, b) -> a * b)).sum();
  }
}
