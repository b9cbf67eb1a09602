package dev.tutti.kernels;

import dev.tutti.DType;
import java.util.List;

/**
 * The kernels that convert the elements of a tensor and search them for NaN. They use a single
 * device and no channel.
 */
public final class ElementKernels {
  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 2048;
  private static final int PER_THREAD = 4;

  /** The types that are converted; positions are the kernel's codes. */
  private static final List<DType> TYPES =
      List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16);

  private static final Kernel CONVERT =
      new Kernel(
          "tutti_convert",
          List.of(
              new Parameter("source", ParameterType.POINTER),
              new Parameter("target", ParameterType.POINTER),
              number("count"),
              new Parameter("from", ParameterType.UINT32),
              new Parameter("to", ParameterType.UINT32)),
          THREADS,
          (elements, layout) -> spreadOver(elements));

  private static final Kernel FIRST_NAN =
      new Kernel(
          "tutti_first_nan",
          List.of(
              new Parameter("data", ParameterType.POINTER),
              number("count"),
              new Parameter("unit", ParameterType.UINT32),
              number("flip"),
              number("mask"),
              number("limit"),
              new Parameter("first", ParameterType.POINTER)),
          THREADS,
          (elements, layout) -> spreadOver(elements));

  private ElementKernels() {}

  private static Parameter number(String name) {
    return new Parameter(name, ParameterType.UINT64);
  }

  private static Launch spreadOver(long elements) {
    long blocks = Math.ceilDiv(elements, (long) THREADS * PER_THREAD);
    return new Launch(Math.clamp(blocks, 1, MOST_BLOCKS), THREADS);
  }

  /**
   * Returns the kernel that copies elements to another type, rounding to nearest, ties to even. Its
   * parameters are the addresses of source and target, the number of elements, and the {@link
   * #code} of both types.
   */
  public static Kernel convert() {
    return CONVERT;
  }

  /**
   * Returns the number of a type in the conversion, or -1 if it does not convert that type.
   *
   * @param dtype the element type
   */
  public static int code(DType dtype) {
    return TYPES.indexOf(dtype);
  }

  /**
   * Returns the kernel that lowers a word to the position of the first NaN. Its parameters are the
   * address and number of the elements (real numbers, two for each complex one), the size of one in
   * bytes, the {@link NanPattern}, and the address of the 64-bit word, which is unsigned.
   */
  public static Kernel firstNan() {
    return FIRST_NAN;
  }

  /**
   * Returns the launch of a kernel.
   *
   * @param kernel one of the kernels of this class
   * @param elements the number of elements that it reads
   */
  public static Launch launch(Kernel kernel, long elements) {
    return kernel.launch(elements);
  }

  /** Returns all kernels of this class. */
  public static List<Kernel> all() {
    return List.of(CONVERT, FIRST_NAN);
  }
}
