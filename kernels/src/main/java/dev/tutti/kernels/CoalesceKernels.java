package dev.tutti.kernels;

import dev.tutti.DType;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The kernels that coalesce a sparse tensor: they compute the linear positions of its entries, sort
 * them (stably, {@value #DIGIT_BITS} bits at a time), find the runs of equal positions, and add up
 * the rows of each run. They use a single device and no channel; each follows the others in a
 * stream.
 *
 * <table>
 * <caption>Cost for n entries, of which u have places of their own, in P sizes multiplied</caption>
 * <tr><th>launches</th><th>bytes of device memory moved</th></tr>
 * <tr><td>6, and 3 for each digit of P - 1</td><td>24 n for each digit, and the values once</td></tr>
 * </table>
 */
public final class CoalesceKernels {
  /** The number of bits by which one round sorts. */
  public static final int DIGIT_BITS = 8;

  /** The number of values of a digit. */
  public static final int DIGITS = 1 << DIGIT_BITS;

  /** The number of keys per block in kernels in which each block counts separately. */
  public static final int TILE = 4096;

  private static final int THREADS = 256;
  private static final int SCAN_THREADS = 1024;
  private static final int MOST_BLOCKS = 2048;

  private static final Parameter KEYS = pointer("keys");
  private static final Parameter ROWS = pointer("rows");
  private static final Parameter SIZES = pointer("sizes");
  private static final Parameter DIMS = new Parameter("dims", ParameterType.UINT32);
  private static final Parameter COUNT = new Parameter("count", ParameterType.UINT32);
  private static final Parameter LONG_COUNT = new Parameter("count", ParameterType.UINT64);
  private static final Parameter SHIFT = new Parameter("shift", ParameterType.UINT32);
  private static final Parameter COUNTS = pointer("counts");
  private static final Parameter BEGINS = pointer("begins");

  private static final Kernel PLACES =
      spread("places", pointer("coordinates"), LONG_COUNT, SIZES, DIMS, KEYS, pointer("outside"));

  private static final Kernel COORDINATES =
      spread("coordinates", KEYS, LONG_COUNT, SIZES, DIMS, pointer("coordinates"));

  private static final Kernel COUNT_DIGITS = tiled("digits", KEYS, COUNT, SHIFT, COUNTS);

  private static final Kernel SCAN =
      new Kernel(
          "tutti_coalesce_scan",
          List.of(pointer("values"), LONG_COUNT, pointer("total")),
          SCAN_THREADS,
          (values, layout) -> new Launch(1, SCAN_THREADS));

  private static final Kernel SCATTER =
      tiled("scatter", KEYS, ROWS, COUNT, SHIFT, BEGINS, pointer("keys_out"), pointer("rows_out"));

  private static final Kernel COUNT_RUNS = tiled("heads", KEYS, COUNT, COUNTS);

  private static final Kernel RUNS =
      tiled("runs", KEYS, COUNT, BEGINS, pointer("starts"), pointer("distinct"));

  private static final Map<DType, Kernel> SUMS = sums();

  private CoalesceKernels() {}

  private static Parameter pointer(String name) {
    return new Parameter(name, ParameterType.POINTER);
  }

  private static Kernel spread(String what, Parameter... parameters) {
    return new Kernel(
        "tutti_coalesce_" + what,
        List.of(parameters),
        THREADS,
        (elements, layout) -> spreadOver(elements));
  }

  private static Kernel tiled(String what, Parameter... parameters) {
    return new Kernel(
        "tutti_coalesce_" + what,
        List.of(parameters),
        THREADS,
        (keys, layout) -> new Launch(tiles(keys), THREADS));
  }

  private static Map<DType, Kernel> sums() {
    Kernel float32 = sum("f32");
    Kernel float64 = sum("f64");
    Kernel bytes = sum("i8");
    Map<DType, Kernel> sums = new EnumMap<>(DType.class);
    sums.put(DType.FLOAT32, float32);
    sums.put(DType.FLOAT64, float64);
    sums.put(DType.FLOAT16, sum("f16"));
    sums.put(DType.BFLOAT16, sum("bf16"));
    sums.put(DType.INT8, bytes);
    sums.put(DType.UINT8, bytes);
    sums.put(DType.INT16, sum("i16"));
    sums.put(DType.INT32, sum("i32"));
    sums.put(DType.INT64, sum("i64"));
    sums.put(DType.BOOL, sum("bool"));
    sums.put(DType.COMPLEX64, float32);
    sums.put(DType.COMPLEX128, float64);
    return sums;
  }

  private static Kernel sum(String label) {
    return spread(
        "sum_" + label,
        pointer("values"),
        new Parameter("columns", ParameterType.UINT64),
        ROWS,
        pointer("starts"),
        pointer("runs"),
        LONG_COUNT,
        pointer("out"));
  }

  private static Launch spreadOver(long elements) {
    return new Launch(Math.clamp(Math.ceilDiv(elements, (long) THREADS), 1, MOST_BLOCKS), THREADS);
  }

  /**
   * Returns the number of blocks that have keys of their own.
   *
   * @param keys the number of keys
   */
  public static int tiles(long keys) {
    return Math.toIntExact(Math.max(1, Math.ceilDiv(keys, (long) TILE)));
  }

  /**
   * Returns the launch of a kernel.
   *
   * @param kernel one of the kernels of this class
   * @param items the number of keys, counts or elements
   */
  public static Launch launch(Kernel kernel, long items) {
    return kernel.launch(items);
  }

  /** Returns the kernel that computes linear positions from coordinates. */
  public static Kernel places() {
    return PLACES;
  }

  /** Returns the kernel that computes coordinates from linear positions. */
  public static Kernel coordinates() {
    return COORDINATES;
  }

  /** Returns the kernel that counts the digits of each tile. */
  public static Kernel countDigits() {
    return COUNT_DIGITS;
  }

  /** Returns the kernel that replaces each count by the sum of the counts before it. */
  public static Kernel scan() {
    return SCAN;
  }

  /**
   * Returns the kernel that moves keys, with their row numbers, behind those with smaller digits.
   */
  public static Kernel scatter() {
    return SCATTER;
  }

  /** Returns the kernel that counts the runs that begin in each tile. */
  public static Kernel countRuns() {
    return COUNT_RUNS;
  }

  /** Returns the kernel that finds where runs begin. */
  public static Kernel runs() {
    return RUNS;
  }

  /**
   * Returns the kernel that adds up the rows of each run.
   *
   * @param dtype the type of the values
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel sum(DType dtype) {
    Kernel kernel = SUMS.get(dtype);
    if (kernel == null) {
      throw new IllegalArgumentException(
          "no kernel sums rows of " + dtype.label() + "; the kernels support " + SUMS.keySet());
    }
    return kernel;
  }

  /**
   * Returns how many kernel elements make up one tensor element: 2 for complex types, otherwise 1.
   *
   * @param dtype the type of the values
   */
  public static int columns(DType dtype) {
    return dtype.isComplex() ? 2 : 1;
  }

  /** Returns all kernels of this class. */
  static List<Kernel> all() {
    List<Kernel> all = new ArrayList<>();
    all.addAll(List.of(PLACES, COORDINATES, COUNT_DIGITS, SCAN, SCATTER, COUNT_RUNS, RUNS));
    SUMS.values().stream().distinct().forEach(all::add);
    return all;
  }
}
