package dev.tutti;

import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/**
 * The capabilities of a backend, by which unsupported calls are refused before anything is sent.
 *
 * <p>A backend declares its capabilities with {@link #builder()} or {@link #ofVersion1}. Neither
 * includes what a later version of Tutti adds: an old backend never declares an operation, type or
 * operator that is newer than it.
 */
public final class Capabilities {
  private static final Capabilities VERSION_1 =
      builder()
          .operations(
              List.of(
                  OpType.BROADCAST,
                  OpType.ALL_REDUCE,
                  OpType.ALL_REDUCE_COALESCED,
                  OpType.REDUCE,
                  OpType.ALL_GATHER,
                  OpType.ALL_GATHER_INTO,
                  OpType.ALL_GATHER_INTO_COALESCED,
                  OpType.GATHER,
                  OpType.SCATTER,
                  OpType.REDUCE_SCATTER,
                  OpType.ALL_TO_ALL_SINGLE,
                  OpType.ALL_TO_ALL,
                  OpType.SEND,
                  OpType.RECV,
                  OpType.RECV_ANY_SOURCE,
                  OpType.BARRIER,
                  OpType.REDUCE_SCATTER_INTO,
                  OpType.ALL_REDUCE_SPARSE,
                  OpType.MONITORED_BARRIER,
                  OpType.REDUCE_SCATTER_INTO_COALESCED))
          .movable(
              List.of(
                  DType.FLOAT32,
                  DType.FLOAT64,
                  DType.FLOAT16,
                  DType.BFLOAT16,
                  DType.INT8,
                  DType.UINT8,
                  DType.BOOL,
                  DType.INT16,
                  DType.INT32,
                  DType.INT64,
                  DType.COMPLEX64,
                  DType.COMPLEX128,
                  DType.FLOAT8_E4M3FN,
                  DType.FLOAT8_E5M2,
                  DType.FLOAT8_E4M3FNUZ,
                  DType.FLOAT8_E5M2FNUZ))
          .reducible(
              List.of(
                  DType.FLOAT32,
                  DType.FLOAT64,
                  DType.FLOAT16,
                  DType.BFLOAT16,
                  DType.INT8,
                  DType.UINT8,
                  DType.BOOL,
                  DType.INT16,
                  DType.INT32,
                  DType.INT64,
                  DType.COMPLEX64,
                  DType.COMPLEX128))
          .reduceOps(
              List.of(
                  ReduceOp.Kind.SUM,
                  ReduceOp.Kind.AVG,
                  ReduceOp.Kind.PRODUCT,
                  ReduceOp.Kind.MIN,
                  ReduceOp.Kind.MAX,
                  ReduceOp.Kind.BAND,
                  ReduceOp.Kind.BOR,
                  ReduceOp.Kind.BXOR,
                  ReduceOp.Kind.PREMUL_SUM))
          .build();

  private final Set<OpType> operations;
  private final Set<DType> movable;
  private final Set<DType> reducible;
  private final Set<ReduceOp.Kind> reduceOps;
  private final Set<String> algorithms;
  private final Set<Feature> features;

  private Capabilities(Builder builder) {
    operations = copy(OpType.class, builder.operations);
    movable = copy(DType.class, builder.movable);
    reducible = copy(DType.class, builder.reducible);
    reduceOps = copy(ReduceOp.Kind.class, builder.reduceOps);
    algorithms = Collections.unmodifiableSet(new TreeSet<>(builder.algorithms));
    features = copy(Feature.class, builder.features);
  }

  /** Copies the elements into a set with constant-time lookup, since every call queries it. */
  private static <E extends Enum<E>> Set<E> copy(Class<E> type, Collection<E> elements) {
    EnumSet<E> copy = EnumSet.noneOf(type);
    copy.addAll(elements);
    return Collections.unmodifiableSet(copy);
  }

  /** Returns a builder of capabilities, initially empty. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Creates the capabilities of a backend that supports every operation, type and operator of
   * version 1 of the SPI. Anything that later versions add is not included.
   *
   * @param features the features that the backend also has
   */
  public static Capabilities ofVersion1(Feature... features) {
    return VERSION_1.toBuilder().features(Arrays.asList(features)).build();
  }

  /** Returns a builder initialized with these capabilities. */
  public Builder toBuilder() {
    return builder()
        .operations(operations)
        .movable(movable)
        .reducible(reducible)
        .reduceOps(reduceOps)
        .algorithms(algorithms)
        .features(features);
  }

  /**
   * Returns these capabilities without the given operations.
   *
   * @param missing the operations to leave out
   */
  public Capabilities without(OpType... missing) {
    EnumSet<OpType> left = EnumSet.noneOf(OpType.class);
    left.addAll(operations);
    left.removeAll(Arrays.asList(missing));
    return toBuilder().operations(left).build();
  }

  /**
   * Returns these capabilities without the given features.
   *
   * @param missing the features to leave out
   */
  public Capabilities without(Set<Feature> missing) {
    EnumSet<Feature> left = EnumSet.noneOf(Feature.class);
    left.addAll(features);
    left.removeAll(missing);
    return toBuilder().features(left).build();
  }

  /**
   * Returns the supported operations; {@link OpType#ALL_REDUCE_SPARSE} stands for sparse tensors.
   */
  public Set<OpType> operations() {
    return operations;
  }

  /** Returns the element types that can be moved between ranks. */
  public Set<DType> movable() {
    return movable;
  }

  /** Returns the element types that can be reduced. */
  public Set<DType> reducible() {
    return reducible;
  }

  /** Returns the supported operators, each on the types it is defined on. */
  public Set<ReduceOp.Kind> reduceOps() {
    return reduceOps;
  }

  /**
   * Returns the names that {@link CallOptions#withAlgorithm} takes, sorted; empty if callers cannot
   * choose. Each is the end of a path of {@link GroupDiagnostics#usageByPath}.
   */
  public Set<String> algorithms() {
    return algorithms;
  }

  /** Returns the supported features. */
  public Set<Feature> features() {
    return features;
  }

  /** Returns whether an operation is supported. */
  public boolean has(OpType operation) {
    return operations.contains(operation);
  }

  /** Returns whether a feature is supported. */
  public boolean has(Feature feature) {
    return features.contains(feature);
  }

  /** Returns whether elements of a type can be reduced by an operator. */
  public boolean canReduce(DType dtype, ReduceOp op) {
    return reducible.contains(dtype) && reduceOps.contains(op.kind()) && op.isDefinedOn(dtype);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Capabilities o
        && operations.equals(o.operations)
        && movable.equals(o.movable)
        && reducible.equals(o.reducible)
        && reduceOps.equals(o.reduceOps)
        && algorithms.equals(o.algorithms)
        && features.equals(o.features);
  }

  @Override
  public int hashCode() {
    return Objects.hash(operations, movable, reducible, reduceOps, algorithms, features);
  }

  @Override
  public String toString() {
    return "Capabilities[operations="
        + operations
        + ", movable="
        + movable
        + ", reducible="
        + reducible
        + ", reduceOps="
        + reduceOps
        + ", algorithms="
        + algorithms
        + ", features="
        + features
        + "]";
  }

  /** A capability of a backend beyond its operations. */
  public enum Feature {
    /** All-gather and reduce-scatter accept parts of unequal size. */
    UNEVEN_PARTS,
    /** Operations are enqueued on the device's current stream and return before they are done. */
    STREAM_ORDERED,
    /**
     * Tensors with gaps are accepted as they are; without this feature the group copies or refuses
     * them.
     */
    STRIDED_TENSORS,
    /**
     * Messages have tags, and wait only for their other side. Without this feature the tag must be
     * 0, and the messages and collectives of a rank run in the order of its calls, so that
     * exchanges in both directions need a {@link Batch}.
     */
    TAGS,
    /** Symmetric memory is available through {@link ProcessGroup#allocateSymmetric}. */
    SYMMETRIC_MEMORY,
    /** The death of a rank is noticed even while nothing is running. */
    DETECTS_DEAD_PEERS,
    /** The group of all ranks can go on with other members ({@link ProcessGroup#reconfigure}). */
    RECONFIGURE
  }

  /** A builder of capabilities; whatever is not set is absent. Not thread-safe. */
  public static final class Builder {
    private Collection<OpType> operations = List.of();
    private Collection<DType> movable = List.of();
    private Collection<DType> reducible = List.of();
    private Collection<ReduceOp.Kind> reduceOps = List.of();
    private Collection<String> algorithms = List.of();
    private Collection<Feature> features = List.of();

    private Builder() {}

    /**
     * Sets the supported operations.
     *
     * @param operations the operations; {@link OpType#ALL_REDUCE_SPARSE} stands for sparse tensors
     * @return this builder
     */
    public Builder operations(Collection<OpType> operations) {
      this.operations = List.copyOf(operations);
      return this;
    }

    /**
     * Sets the element types that the backend moves between ranks.
     *
     * @param movable the types
     * @return this builder
     */
    public Builder movable(Collection<DType> movable) {
      this.movable = List.copyOf(movable);
      return this;
    }

    /**
     * Sets the element types that the backend reduces.
     *
     * @param reducible the types
     * @return this builder
     */
    public Builder reducible(Collection<DType> reducible) {
      this.reducible = List.copyOf(reducible);
      return this;
    }

    /**
     * Sets the operators that the backend supports, each on the types it is defined on.
     *
     * @param reduceOps the operators
     * @return this builder
     */
    public Builder reduceOps(Collection<ReduceOp.Kind> reduceOps) {
      this.reduceOps = List.copyOf(reduceOps);
      return this;
    }

    /**
     * Sets the algorithms that the caller of an all-reduce may request.
     *
     * @param algorithms the names, each the last part of what {@code Operation.took} is given
     * @return this builder
     */
    public Builder algorithms(Collection<String> algorithms) {
      this.algorithms = List.copyOf(algorithms);
      return this;
    }

    /**
     * Sets the other features that the backend has.
     *
     * @param features the features
     * @return this builder
     */
    public Builder features(Collection<Feature> features) {
      this.features = List.copyOf(features);
      return this;
    }

    /** Creates the capabilities. */
    public Capabilities build() {
      return new Capabilities(this);
    }
  }
}
