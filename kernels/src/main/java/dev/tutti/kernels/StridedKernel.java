package dev.tutti.kernels;

import java.util.List;

/**
 * The kernel that copies between a tensor with gaps and one without. It uses a single device and no
 * channel.
 */
public final class StridedKernel {
  /** The maximum number of dimension sizes of a tensor that one launch copies. */
  public static final int MAX_SIZES = 4;

  /** The largest unit in bytes that it copies at once; all units are powers of two. */
  public static final int MAX_UNIT = 16;

  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 4096;

  private static final Kernel COPY =
      new Kernel(
          "tutti_strided_copy",
          List.of(
              new Parameter("gaps", ParameterType.POINTER),
              new Parameter("dense", ParameterType.POINTER),
              number("count"),
              new Parameter("unit", ParameterType.UINT32),
              new Parameter("to_dense", ParameterType.UINT32),
              number("size0"),
              number("size1"),
              number("size2"),
              number("step0"),
              number("step1"),
              number("step2"),
              number("step3")),
          THREADS,
          (units, layout) -> spreadOver(units));

  private StridedKernel() {}

  private static Parameter number(String name) {
    return new Parameter(name, ParameterType.UINT64);
  }

  private static Launch spreadOver(long units) {
    return new Launch(Math.clamp(Math.ceilDiv(units, (long) THREADS), 1, MOST_BLOCKS), THREADS);
  }

  /**
   * Returns the kernel. Its parameters are the addresses, the number of units, the unit size in
   * bytes, 1 for a copy into the dense tensor or 0 for one out of it, then the three inner sizes in
   * units and the four strides in bytes, innermost first.
   */
  public static Kernel copy() {
    return COPY;
  }

  /**
   * Returns the launch of the kernel.
   *
   * @param units the number of units that it copies
   */
  public static Launch launch(long units) {
    return COPY.launch(units);
  }
}
