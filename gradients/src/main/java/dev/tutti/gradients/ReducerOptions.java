package dev.tutti.gradients;

import dev.tutti.Tensor;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The options of a {@link GradientReducer}. Immutable; each {@code with} method returns a changed
 * copy. All ranks must use the same options, apart from tensors and the allocator.
 */
public final class ReducerOptions {
  /** The number that gradients are divided by while some ranks have no inputs left. */
  public enum Divisor {
    /** The number of ranks in the group, as in every other step. */
    GROUP_SIZE,
    /** The number of ranks that still have inputs. */
    ACTIVE_RANKS
  }

  /** The size at which a bucket is full, as in c10d: 25 MiB. */
  public static final long DEFAULT_BUCKET_BYTES = 25L << 20;

  /** The size at which the first bucket is full, as in c10d: 1 MiB. */
  public static final long DEFAULT_FIRST_BUCKET_BYTES = 1L << 20;

  /**
   * The defaults, as in c10d: every parameter gets a gradient in every step, in the memory of the
   * buckets.
   */
  public static final ReducerOptions DEFAULT = new ReducerOptions(new Fields());

  private final Fields fields;

  private ReducerOptions(Fields fields) {
    this.fields = fields;
  }

  private ReducerOptions with(Consumer<Fields> change) {
    Fields copy = fields.copy();
    change.accept(copy);
    return new ReducerOptions(copy);
  }

  /**
   * Changes the size of buckets. A bucket is full when it has at least that many bytes.
   *
   * @param first the size of the bucket that is reduced first, in bytes, at least 1
   * @param others the size of each other bucket, in bytes, at least 1
   */
  public ReducerOptions withBucketBytes(long first, long others) {
    if (first < 1 || others < 1) {
      throw new IllegalArgumentException(
          "buckets need at least one byte, not " + first + " and " + others);
    }
    return with(
        copy -> {
          copy.firstBucketBytes = first;
          copy.bucketBytes = others;
        });
  }

  /**
   * Names the parameters, for exceptions and for the comparison of ranks.
   *
   * @param names one name for each parameter
   */
  public ReducerOptions withNames(List<String> names) {
    return with(copy -> copy.names = List.copyOf(names));
  }

  /**
   * Adds other tensors of the model, such as running means, which are copied from rank 0 at the
   * start.
   *
   * @param buffers the tensors, of any type and shape, the same on all ranks
   */
  public ReducerOptions withBuffers(List<Tensor> buffers) {
    return with(copy -> copy.buffers = List.copyOf(buffers));
  }

  /**
   * Copies gradients into the buckets and the means back, for an engine that keeps gradients in
   * memory of its own. Without this option, the reducer hands out the memory and nothing is copied.
   *
   * @param gradients one tensor for each parameter, of its type, shape and device, at any strides;
   *     none to undo this option
   */
  public ReducerOptions withGradients(List<Tensor> gradients) {
    return with(copy -> copy.gradients = gradients.isEmpty() ? null : List.copyOf(gradients));
  }

  /**
   * Allows steps in which some parameters get no gradient on some or all ranks (c10d: {@code
   * find_unused_parameters}). The ranks then exchange which parameters were used, once in each
   * step.
   */
  public ReducerOptions withUnusedParameters() {
    return with(copy -> copy.unusedParameters = true);
  }

  /**
   * Counts an unused parameter with what its gradient's memory holds, not as zeros, for engines
   * that add to gradients until the program clears them, as PyTorch does. What earlier steps left
   * there then stays in the mean.
   */
  public ReducerOptions withAccumulation() {
    return with(copy -> copy.accumulation = true);
  }

  /**
   * Compares the parameters of all ranks at the end of every few steps, by checksums of their bits.
   * A step that finds a difference fails on all ranks and names the first parameter that differs.
   * Steps in which some ranks have no inputs left compare nothing.
   *
   * @param steps the number of steps from one comparison to the next, at least 1; a comparison
   *     reads all parameters
   */
  public ReducerOptions withDigest(int steps) {
    if (steps < 1) {
      throw new IllegalArgumentException("a digest is taken every 1 or more steps, not " + steps);
    }
    return with(copy -> copy.digestSteps = steps);
  }

  /**
   * Sets which tensors {@link #withDigest} compares, in place of the reducer's parameters; for
   * engines that can replace the memory of parameters or have parameters that are not reduced.
   *
   * @param digested returns the tensors by name, on the host, in the same order on all ranks;
   *     called during {@link GradientReducer#await}, perhaps by another thread
   */
  public ReducerOptions withDigested(Supplier<? extends SequencedMap<String, Tensor>> digested) {
    return with(copy -> copy.digested = Objects.requireNonNull(digested, "digested"));
  }

  /**
   * Allows ranks to take different numbers of steps (c10d: {@code Join}). A rank that has finished
   * calls {@link GradientReducer#join}. The ranks then count those that still have inputs, once in
   * each step.
   *
   * @param divisor the number that gradients are divided by while some ranks have finished
   */
  public ReducerOptions withUnevenInputs(Divisor divisor) {
    return with(copy -> copy.divisor = Objects.requireNonNull(divisor, "divisor"));
  }

  /**
   * Keeps the first buckets, and thereby the views returned by {@link GradientReducer#gradient},
   * for good. Without this option, the buckets are formed anew after the first step, in the order
   * in which gradients became ready on rank 0.
   */
  public ReducerOptions withoutRebuild() {
    return with(copy -> copy.rebuild = false);
  }

  /**
   * Reduces buckets with a hook other than {@link GradientHook#ALL_REDUCE}.
   *
   * @param hook the hook, which must reduce in the same way on all ranks; it may serve several
   *     reducers if its documentation says so
   */
  public ReducerOptions withHook(GradientHook hook) {
    return with(copy -> copy.hook = Objects.requireNonNull(hook, "hook"));
  }

  /**
   * Allocates buckets with an allocator other than {@link BucketAllocator#standard}.
   *
   * @param allocator an allocator for the devices of the parameters
   */
  public ReducerOptions withAllocator(BucketAllocator allocator) {
    return with(copy -> copy.allocator = Objects.requireNonNull(allocator, "allocator"));
  }

  /**
   * Reduces buckets on devices in the current stream of the thread that marks the last gradient.
   * Without this option, a stream of the reducer reduces them while backward continues, unless
   * another reducer has such a stream on the device, two ranks of this process share the device, or
   * {@code CUDA_DEVICE_MAX_CONNECTIONS} is below 8.
   */
  public ReducerOptions withoutOverlap() {
    return with(copy -> copy.overlap = false);
  }

  /**
   * Returns whether every parameter gets a gradient in every step, in the memory of the buckets,
   * and the default hook reduces them. Another kind of hook may rely on this.
   */
  public boolean isPlain() {
    return fields.gradients == null
        && !fields.unusedParameters
        && fields.divisor == null
        && fields.hook.equals(GradientHook.ALL_REDUCE);
  }

  long firstBucketBytes() {
    return fields.firstBucketBytes;
  }

  long bucketBytes() {
    return fields.bucketBytes;
  }

  @Nullable List<String> names() {
    return fields.names;
  }

  List<Tensor> buffers() {
    return fields.buffers;
  }

  @Nullable List<Tensor> gradients() {
    return fields.gradients;
  }

  boolean unusedParameters() {
    return fields.unusedParameters;
  }

  boolean accumulation() {
    return fields.accumulation;
  }

  /** Returns the number of steps from one digest to the next, or 0 if there are none. */
  int digestSteps() {
    return fields.digestSteps;
  }

  @Nullable Supplier<? extends SequencedMap<String, Tensor>> digested() {
    return fields.digested;
  }

  @Nullable Divisor divisor() {
    return fields.divisor;
  }

  /**
   * Returns whether buckets follow the order of the first step, which is not defined if some
   * parameters may be unused.
   */
  boolean rebuild() {
    return fields.rebuild && !fields.unusedParameters;
  }

  boolean overlap() {
    return fields.overlap;
  }

  GradientHook hook() {
    return fields.hook;
  }

  BucketAllocator allocator() {
    return fields.allocator;
  }

  /** Describes the options that must be the same on all ranks. */
  @Override
  public String toString() {
    return "bucketBytes="
        + fields.firstBucketBytes
        + ","
        + fields.bucketBytes
        + " unusedParameters="
        + fields.unusedParameters
        + " accumulation="
        + fields.accumulation
        + " digestSteps="
        + fields.digestSteps
        + " unevenInputs="
        + (fields.divisor == null ? "none" : fields.divisor)
        + " rebuild="
        + rebuild()
        + " buffers="
        + fields.buffers.size();
  }

  private static final class Fields implements Cloneable {
    long firstBucketBytes = DEFAULT_FIRST_BUCKET_BYTES;
    long bucketBytes = DEFAULT_BUCKET_BYTES;
    @Nullable List<String> names;
    List<Tensor> buffers = List.of();
    @Nullable List<Tensor> gradients;
    boolean unusedParameters;
    boolean accumulation;
    int digestSteps;
    @Nullable Supplier<? extends SequencedMap<String, Tensor>> digested;
    @Nullable Divisor divisor;
    boolean rebuild = true;
    boolean overlap = true;
    GradientHook hook = GradientHook.ALL_REDUCE;
    BucketAllocator allocator = BucketAllocator.standard();

    Fields copy() {
      try {
        return (Fields) clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }
}
