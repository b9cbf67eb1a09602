package dev.tutti;

import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;

/**
 * Says what a backend can do, so that a call it cannot do is refused before anything is sent.
 *
 * @param operations operations it has; {@link OpType#ALL_REDUCE_SPARSE} stands for sparse tensors
 * @param movable element types it moves between ranks
 * @param reducible element types it reduces
 * @param reduceOps operators it has, on the types on which they are defined
 * @param features what else it has
 */
public record Capabilities(
    Set<OpType> operations,
    Set<DType> movable,
    Set<DType> reducible,
    Set<ReduceOp.Kind> reduceOps,
    Set<Feature> features) {
  /** Names what a backend may have beside its operations. */
  public enum Feature {
    /** All-gather and reduce-scatter with parts of unequal size. */
    UNEVEN_PARTS,
    /** Operations are enqueued on the device's current stream and return before they are done. */
    STREAM_ORDERED,
    /** Tensors with gaps are taken as they are; without it the group copies or refuses them. */
    STRIDED_TENSORS,
    /**
     * Messages have tags; without them the tag must be 0, and those of two ranks keep their order.
     */
    TAGS,
    /** Symmetric memory, {@link ProcessGroup#allocateSymmetric}. */
    SYMMETRIC_MEMORY,
    /** Results are those of the real operation; a fake may lack it. */
    REAL_RESULTS,
    /** A rank that dies is noticed while nothing is running. */
    DETECTS_DEAD_PEERS
  }

  /** Creates capabilities; copies the sets. */
  public Capabilities {
    operations = copy(OpType.class, operations);
    movable = copy(DType.class, movable);
    reducible = copy(DType.class, reducible);
    reduceOps = copy(ReduceOp.Kind.class, reduceOps);
    features = copy(Feature.class, features);
  }

  /** Copies into a set that tells in one step whether an element is there: every call asks. */
  private static <E extends Enum<E>> Set<E> copy(Class<E> type, Set<E> elements) {
    EnumSet<E> copy = EnumSet.noneOf(type);
    copy.addAll(elements);
    return Collections.unmodifiableSet(copy);
  }

  /**
   * Creates the capabilities of a backend that has every operation, type and operator.
   *
   * @param features what else it has
   */
  public static Capabilities all(Feature... features) {
    EnumSet<DType> reducible = EnumSet.allOf(DType.class);
    reducible.removeIf(DType::isOpaque);
    return new Capabilities(
        EnumSet.complementOf(
            EnumSet.of(
                OpType.UNKNOWN,
                OpType.INIT,
                OpType.CLOSE,
                OpType.SPLIT,
                OpType.SUBGROUP,
                OpType.COALESCED,
                OpType.ALLOCATE_SYMMETRIC)),
        EnumSet.allOf(DType.class),
        reducible,
        EnumSet.allOf(ReduceOp.Kind.class),
        Set.of(features));
  }

  /**
   * Creates the same capabilities without some features.
   *
   * @param missing what is not there
   */
  public Capabilities without(Set<Feature> missing) {
    EnumSet<Feature> left = EnumSet.noneOf(Feature.class);
    left.addAll(features);
    left.removeAll(missing);
    return new Capabilities(operations, movable, reducible, reduceOps, left);
  }

  /** Tells whether an operation is there. */
  public boolean has(OpType operation) {
    return operations.contains(operation);
  }

  /** Tells whether a feature is there. */
  public boolean has(Feature feature) {
    return features.contains(feature);
  }

  /** Tells whether elements of a type can be reduced by an operator. */
  public boolean canReduce(DType dtype, ReduceOp op) {
    return reducible.contains(dtype) && reduceOps.contains(op.kind()) && op.isDefinedOn(dtype);
  }
}
