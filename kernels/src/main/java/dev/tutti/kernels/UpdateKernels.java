package dev.tutti.kernels;

import java.util.List;

/**
 * The kernels that take a step of an optimizer. They use a single device and no channel, and read
 * the numbers of the step from device memory; each follows the others in a stream.
 */
public final class UpdateKernels {
  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 2048;
  private static final int PER_THREAD = 4;
  private static final int SQUARES_PER_THREAD = 16;

  private static final Parameter COUNT = new Parameter("count", ParameterType.UINT64);
  private static final Parameter PARTIALS = pointer("partials");
  private static final Parameter CONTROL = pointer("control");

  private static final Kernel SQUARES =
      new Kernel(
          "tutti_squares",
          List.of(pointer("data"), COUNT, code("type"), PARTIALS),
          THREADS,
          (elements, layout) -> spreadOver(elements, SQUARES_PER_THREAD));

  private static final Kernel ADD_SQUARES =
      new Kernel(
          "tutti_add_squares",
          List.of(PARTIALS, COUNT, CONTROL),
          THREADS,
          (elements, layout) -> new Launch(1, THREADS));

  private static final Kernel PREPARE =
      new Kernel(
          "tutti_prepare_update", List.of(CONTROL), 1, (elements, layout) -> new Launch(1, 1));

  private static final Kernel UPDATE =
      new Kernel(
          "tutti_update",
          List.of(
              pointer("parameters"),
              pointer("copy"),
              pointer("gradients"),
              pointer("first"),
              pointer("second"),
              COUNT,
              code("gradient_type"),
              code("copy_type"),
              CONTROL),
          THREADS,
          (elements, layout) -> spreadOver(elements, PER_THREAD));

  private UpdateKernels() {}

  private static Parameter pointer(String name) {
    return new Parameter(name, ParameterType.POINTER);
  }

  private static Parameter code(String name) {
    return new Parameter(name, ParameterType.UINT32);
  }

  private static Launch spreadOver(long elements, int perThread) {
    long blocks = Math.ceilDiv(elements, (long) THREADS * perThread);
    return new Launch(Math.clamp(blocks, 1, MOST_BLOCKS), THREADS);
  }

  /**
   * Returns the kernel that adds up squares, one float64 sum for each block of its launch. Its
   * parameters are the address and number of the elements, the {@link ElementKernels#code} of their
   * type, and the address of the sums.
   */
  public static Kernel squares() {
    return SQUARES;
  }

  /**
   * Returns the kernel that adds up the sums of blocks. Its parameters are their address and
   * number, and the address of the numbers of the step.
   */
  public static Kernel addSquares() {
    return ADD_SQUARES;
  }

  /**
   * Returns the kernel that computes what an update reads. Its parameter is the address of the
   * numbers of the step.
   */
  public static Kernel prepare() {
    return PREPARE;
  }

  /**
   * Returns the kernel that updates float32 parameters. Its parameters are their address, that of a
   * rounded copy or 0, that of the gradients, those of two float32 states or 0, the number of
   * elements, the {@link ElementKernels#code} of the gradients and of the copy, and the address of
   * the numbers of the step.
   */
  public static Kernel update() {
    return UPDATE;
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
    return List.of(SQUARES, ADD_SQUARES, PREPARE, UPDATE);
  }
}
