package dev.tutti.cpu.reduce;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;

/**
 * A block of accumulators in an array, with a second array for the elements that are combined with
 * them. Used by one thread; {@code bytes} is always a multiple of the element size and at most
 * {@link #capacity}.
 */
public abstract class ElementBlock {
  static final int ARRAY_BYTES = 8192;

  /*
   * Larger blocks mean fewer copies, but for memory outside of the caches, blocks of 4 KiB and more
   * were half as fast as blocks of 2 KiB. Long runs, which cannot be in the caches, are therefore
   * processed in short blocks (docs/performance-log.md).
   */
  private static final int SHORT_BLOCK = 2048;

  private static final long LONG_RUN = 4 << 20;

  /*
   * A thread that lives longer than a class loader must not hold it, so it refers to its blocks
   * weakly; this class holds them for as long as the thread lives.
   */
  private static final Map<Thread, Blocks> HELD = Collections.synchronizedMap(new WeakHashMap<>());

  private static final ThreadLocal<WeakReference<Blocks>> BLOCKS =
      ThreadLocal.withInitial(
          () -> {
            Blocks made =
                new Blocks(
                    new EnumMap<>(DType.class),
                    new EnumMap<>(DType.class),
                    new EnumMap<>(DType.class));
            HELD.put(Thread.currentThread(), made);
            return new WeakReference<>(made);
          });

  private record Blocks(
      EnumMap<DType, ElementBlock> plain,
      EnumMap<DType, ElementBlock> packed,
      EnumMap<DType, ElementBlock> means) {}

  /**
   * Returns this thread's block for an operator on a type, creating it at first use.
   *
   * @param kind the operator
   * @param dtype the type, which must not be complex and on which the operator must be defined
   */
  public static ElementBlock of(ReduceOp.Kind kind, DType dtype) {
    Blocks blocks = Objects.requireNonNull(BLOCKS.get().get());
    return isPacked(kind, dtype)
        ? blocks.packed.computeIfAbsent(dtype, IntegerBlocks.Packed::new)
        : blocks.plain.computeIfAbsent(dtype, ElementBlock::plain);
  }

  /**
   * Returns this thread's block for means, creating it at first use. {@link #toMean} ends a mean.
   *
   * @param dtype the type, which must not be complex and on which AVG must be defined
   * @param inputs the number of runs that will be loaded or combined, at least 1
   */
  public static ElementBlock ofMean(DType dtype, int inputs) {
    Blocks blocks = Objects.requireNonNull(BLOCKS.get().get());
    ElementBlock block = blocks.means.computeIfAbsent(dtype, ElementBlock::mean);
    block.begin(inputs);
    return block;
  }

  /** Tells whether several elements are computed together in one long. */
  private static boolean isPacked(ReduceOp.Kind kind, DType dtype) {
    return switch (dtype) {
      case BOOL -> true;
      case INT8, UINT8, INT16 ->
          switch (kind) {
            case MIN, MAX, BAND, BOR, BXOR -> true;
            default -> false;
          };
      default -> false;
    };
  }

  private static ElementBlock plain(DType dtype) {
    return switch (dtype) {
      case FLOAT32 -> new FloatBlocks.Float32();
      case FLOAT64 -> new FloatBlocks.Float64();
      case FLOAT16 -> new FloatBlocks.Float16();
      case BFLOAT16 -> new FloatBlocks.Bfloat16();
      case INT64 -> new IntegerBlocks.Int64();
      case INT32 -> new IntegerBlocks.Int32();
      case INT16 -> new IntegerBlocks.Int16();
      case INT8 -> new IntegerBlocks.Int8(true);
      case UINT8 -> new IntegerBlocks.Int8(false);
      default -> throw new IllegalArgumentException(dtype.label() + " cannot be reduced");
    };
  }

  private static ElementBlock mean(DType dtype) {
    return switch (dtype) {
      case FLOAT32 -> new FloatMeans.Float32();
      case FLOAT64 -> new FloatMeans.Float64();
      case FLOAT16 -> new FloatMeans.Float16();
      case BFLOAT16 -> new FloatMeans.Bfloat16();
      default -> IntegerMeanBlock.create(dtype);
    };
  }

  /**
   * Returns how many bytes of memory fit in a block; elements that are widened need more room in
   * the array.
   */
  public int capacity() {
    return ARRAY_BYTES;
  }

  /**
   * Returns how many bytes of a run are best processed at a time.
   *
   * @param bytes the size of the whole run
   */
  public final int step(long bytes) {
    return bytes > LONG_RUN ? SHORT_BLOCK : capacity();
  }

  /** Copies memory into the accumulators. */
  public abstract void load(MemorySegment memory, long offset, int bytes);

  /** Combines the accumulators with memory: {@code accumulator = accumulator op memory}. */
  public abstract void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes);

  /**
   * Sets the accumulators to the combination of two runs of memory: {@code accumulator = a op b}.
   */
  public void loadCombined(
      ReduceOp.Kind kind, MemorySegment a, long aOffset, MemorySegment b, long bOffset, int bytes) {
    load(a, aOffset, bytes);
    combine(kind, b, bOffset, bytes);
  }

  /** Rounds the accumulators to the element type and copies them to memory. */
  public abstract void store(MemorySegment memory, long offset, int bytes);

  /** Prepares for the mean of a number of inputs. */
  void begin(int inputs) {
    throw new UnsupportedOperationException("this block computes no means");
  }

  /** Turns the accumulators, to which all inputs have been added, into their mean. */
  public void toMean(int bytes) {
    throw new UnsupportedOperationException("this block computes no means");
  }

  /** Multiplies the accumulators by a factor. */
  public void scale(double factor, int bytes) {
    throw new UnsupportedOperationException("only floating-point elements can be scaled");
  }

  /** Divides the accumulators by a positive number, which is whole for integers. */
  public void divide(double divisor, int bytes) {
    throw new UnsupportedOperationException("these elements cannot be divided");
  }
}
