package dev.tutti.cpu.reduce;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;

/** The blocks of a thread, one for each type and kind of operator that it has used. */
public final class ElementBlocks {
  /*
   * A thread that lives longer than a class loader must not hold it, so it refers to its blocks
   * weakly; this class holds them for as long as the thread lives.
   */
  private static final Map<Thread, ElementBlocks> HELD =
      Collections.synchronizedMap(new WeakHashMap<>());

  private static final ThreadLocal<WeakReference<ElementBlocks>> BLOCKS =
      ThreadLocal.withInitial(
          () -> {
            ElementBlocks made = new ElementBlocks();
            HELD.put(Thread.currentThread(), made);
            return new WeakReference<>(made);
          });

  private final EnumMap<DType, ElementBlock> plain = new EnumMap<>(DType.class);
  private final EnumMap<DType, ElementBlock> packed = new EnumMap<>(DType.class);
  private final EnumMap<DType, ElementBlock> means = new EnumMap<>(DType.class);

  private ElementBlocks() {}

  /**
   * Returns this thread's block for an operator on a type, creating it at first use.
   *
   * @param kind the operator
   * @param dtype the type, which must not be complex and on which the operator must be defined
   */
  public static ElementBlock of(ReduceOp.Kind kind, DType dtype) {
    ElementBlocks blocks = Objects.requireNonNull(BLOCKS.get().get());
    return isPacked(kind, dtype)
        ? blocks.packed.computeIfAbsent(dtype, IntegerBlocks.Packed::new)
        : blocks.plain.computeIfAbsent(dtype, ElementBlocks::plain);
  }

  /**
   * Returns this thread's block for means, creating it at first use. {@link ElementBlock#toMean}
   * ends a mean.
   *
   * @param dtype the type, which must not be complex and on which AVG must be defined
   * @param inputs the number of runs that will be loaded or combined, at least 1
   */
  public static ElementBlock ofMean(DType dtype, int inputs) {
    ElementBlocks blocks = Objects.requireNonNull(BLOCKS.get().get());
    ElementBlock block = blocks.means.computeIfAbsent(dtype, ElementBlocks::mean);
    block.begin(inputs);
    return block;
  }

  /**
   * Returns this thread's block for means of integers.
   *
   * @param dtype an integer type
   * @param inputs the number of inputs of the mean, at least 1
   */
  public static IntegerMeanBlock ofIntegerMean(DType dtype, int inputs) {
    return (IntegerMeanBlock) ofMean(dtype, inputs);
  }

  /** Returns whether several elements are computed together in one long. */
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
}
