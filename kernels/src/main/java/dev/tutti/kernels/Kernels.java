package dev.tutti.kernels;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The kernels of the image. Lookups allocate nothing.
 *
 * <p>Load all functions before the first launch ({@code CUDA_MODULE_LOADING=EAGER}, or {@code
 * cuFuncLoad}): a kernel that is loaded at its launch waits for the device, where another rank's
 * kernel may already be waiting for it.
 */
public final class Kernels {
  /** The maximum number of threads per block of the collective kernels. */
  public static final int MAX_THREADS = Launch.MAX_THREADS;

  private static final int WARP = 32;

  private static final Parameter CHANNEL = new Parameter("channel", ParameterType.CHANNEL);
  private static final Parameter CONTROL = new Parameter("control", ParameterType.POINTER);
  private static final Parameter TIMEOUT_MS = new Parameter("timeout_ms", ParameterType.UINT64);

  private static final Kernel STREAM_BLOCK =
      new Kernel(
          "tutti_stream_block",
          List.of(new Parameter("comm", ParameterType.POINTER), TIMEOUT_MS),
          1,
          (bytes, layout) -> new Launch(1, 1));

  private static final Kernel PUT_SIGNAL =
      new Kernel(
          "tutti_put_signal",
          List.of(new Parameter("word", ParameterType.POINTER), CONTROL, TIMEOUT_MS),
          WARP,
          (bytes, layout) -> Launch.ONE_WARP);

  private static final Kernel WAIT_SIGNAL =
      new Kernel(
          "tutti_wait_signal",
          List.of(new Parameter("word", ParameterType.POINTER), CONTROL, TIMEOUT_MS),
          WARP,
          (bytes, layout) -> Launch.ONE_WARP);

  private static final Kernel SIGNAL_BARRIER =
      new Kernel(
          "tutti_signal_barrier",
          List.of(
              new Parameter("pads", ParameterType.SIGNAL_PADS),
              new Parameter("channel", ParameterType.UINT32),
              new Parameter("rank", ParameterType.UINT32),
              new Parameter("ranks", ParameterType.UINT32),
              CONTROL,
              TIMEOUT_MS),
          WARP,
          (bytes, layout) -> Launch.ONE_WARP);

  private static final Kernel BARRIER =
      new Kernel(
          "tutti_barrier",
          List.of(CHANNEL, new Parameter("timeout_ns", ParameterType.UINT64)),
          WARP,
          (bytes, layout) -> Launch.ONE_WARP);

  private static final Kernel EXCHANGE =
      new Kernel(
          "tutti_exchange",
          List.of(CHANNEL, new Parameter("call", ParameterType.EXCHANGE_CALL)),
          MAX_THREADS,
          LaunchRules::exchange);

  private static final List<Parameter> REDUCE_PARAMETERS =
      List.of(CHANNEL, new Parameter("call", ParameterType.REDUCE_CALL));

  private static final Map<DType, ReduceKernels> REDUCE = reduceKernels();

  private static final Map<DType, Kernel> UNEQUAL_TWO_SHOT = ofReals(Kernels::unequalTwoShot);
  private static final Map<DType, Kernel> ADD_PARTS = ofReals(Kernels::addParts);
  private static final IdentityHashMap<Kernel, Kernel> SOME_LANES = someLanes();

  private record ReduceKernels(Family sums, Family others) {}

  private record Family(Kernel oneShot, Kernel twoShot, Kernel chunks, Kernel unequalChunks) {}

  private Kernels() {}

  private static Map<DType, ReduceKernels> reduceKernels() {
    Map<DType, ReduceKernels> kernels = new EnumMap<>(DType.class);
    kernels.put(DType.FLOAT32, reduceKernels("f32", DType.FLOAT32));
    kernels.put(DType.FLOAT64, reduceKernels("f64", DType.FLOAT64));
    kernels.put(DType.FLOAT16, reduceKernels("f16", DType.FLOAT16));
    kernels.put(DType.BFLOAT16, reduceKernels("bf16", DType.BFLOAT16));
    kernels.put(DType.INT8, reduceKernels("i8", DType.INT8));
    kernels.put(DType.UINT8, reduceKernels("u8", DType.UINT8));
    kernels.put(DType.INT32, reduceKernels("i32", DType.INT32));
    kernels.put(DType.INT64, reduceKernels("i64", DType.INT64));
    return kernels;
  }

  private static ReduceKernels reduceKernels(String label, DType dtype) {
    return new ReduceKernels(
        family(label + "_sum", payload(dtype, ReduceOp.Kind.SUM)),
        family(label + "_other", payload(dtype, ReduceOp.Kind.MAX)));
  }

  private static int payload(DType dtype, ReduceOp.Kind op) {
    return hasFullPackets(dtype, op)
        ? ChannelLayout.FULL_PAYLOAD
        : ChannelLayout.packetPayload(dtype.byteSize());
  }

  /**
   * Returns whether packets of a reduction contain nothing but data, as for sums of real numbers.
   *
   * @param dtype the element type
   * @param op the operator
   */
  public static boolean hasFullPackets(DType dtype, ReduceOp.Kind op) {
    return switch (op) {
      case SUM, AVG, PREMUL_SUM -> !dtype.isInteger();
      case PRODUCT, MIN, MAX, BAND, BOR, BXOR -> false;
    };
  }

  private static Map<DType, Kernel> ofReals(Function<String, Kernel> make) {
    return new EnumMap<>(
        Map.of(
            DType.FLOAT32, make.apply("f32"),
            DType.FLOAT64, make.apply("f64"),
            DType.FLOAT16, make.apply("f16"),
            DType.BFLOAT16, make.apply("bf16")));
  }

  private static Kernel unequalTwoShot(String label) {
    return new Kernel(
        "tutti_unequal_two_shot_" + label + "_sum",
        REDUCE_PARAMETERS,
        MAX_THREADS,
        (bytes, layout) -> LaunchRules.twoShot(bytes, ChannelLayout.FULL_PAYLOAD, layout));
  }

  private static Kernel addParts(String label) {
    return new Kernel(
        "tutti_add_parts_" + label + "_sum",
        List.of(new Parameter("call", ParameterType.REDUCE_CALL)),
        LaunchRules.ADD_THREADS,
        LaunchRules::addParts);
  }

  private static IdentityHashMap<Kernel, Kernel> someLanes() {
    IdentityHashMap<Kernel, Kernel> some = new IdentityHashMap<>();
    List<DType> tuned =
        List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16, DType.UINT8);
    for (DType dtype : tuned) {
      Kernel all = of(dtype).sums().chunks();
      String name = all.name().replace("_chunks_", "_some_chunks_");
      some.put(all, new Kernel(name, all.parameters(), all.maxThreads(), all.rule()));
    }
    return some;
  }

  /**
   * Returns the kernel for a launch that has only some of the lanes of its call.
   *
   * @param kernel the kernel that has all of them
   */
  public static Kernel someLanes(Kernel kernel) {
    return SOME_LANES.getOrDefault(kernel, kernel);
  }

  private static Family family(String suffix, int payload) {
    List<Parameter> parameters = REDUCE_PARAMETERS;
    return new Family(
        new Kernel(
            "tutti_one_shot_" + suffix,
            parameters,
            MAX_THREADS,
            (bytes, layout) -> LaunchRules.oneShot(bytes, payload, layout)),
        new Kernel(
            "tutti_two_shot_" + suffix,
            parameters,
            MAX_THREADS,
            (bytes, layout) -> LaunchRules.twoShot(bytes, payload, layout)),
        new Kernel("tutti_chunks_" + suffix, parameters, MAX_THREADS, LaunchRules::chunks),
        new Kernel("tutti_unequal_chunks_" + suffix, parameters, MAX_THREADS, LaunchRules::chunks));
  }

  /** Returns the kernel that holds up a stream until the host releases it. */
  public static Kernel streamBlock() {
    return STREAM_BLOCK;
  }

  /** Returns the kernel that sets a word of a peer's signal pad. */
  public static Kernel putSignal() {
    return PUT_SIGNAL;
  }

  /** Returns the kernel that waits for a word of this rank's signal pad and clears it. */
  public static Kernel waitSignal() {
    return WAIT_SIGNAL;
  }

  /** Returns the barrier over signal pads. */
  public static Kernel signalBarrier() {
    return SIGNAL_BARRIER;
  }

  /** Returns the barrier of a channel. */
  public static Kernel barrier() {
    return BARRIER;
  }

  /** Returns the kernel that moves bytes between all pairs of ranks. */
  public static Kernel exchange() {
    return EXCHANGE;
  }

  /** Returns the broadcast in chunks, for any type. */
  public static Kernel broadcast() {
    return of(DType.UINT8).sums().chunks();
  }

  /**
   * Returns the one-shot all-reduce, which uses packets; a rank whose {@code out} is 0 takes part
   * but keeps nothing, which turns it into a reduce.
   *
   * @param dtype the element type
   * @param op the operator
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel oneShot(DType dtype, ReduceOp.Kind op) {
    return family(dtype, op).oneShot();
  }

  /**
   * Returns the two-shot all-reduce, which uses packets and whose first half is a reduce-scatter.
   *
   * @param dtype the element type
   * @param op the operator
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel twoShot(DType dtype, ReduceOp.Kind op) {
    return family(dtype, op).twoShot();
  }

  /**
   * Returns the all-reduce, reduce or reduce-scatter in chunks.
   *
   * @param dtype the element type
   * @param op the operator
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel chunks(DType dtype, ReduceOp.Kind op) {
    return family(dtype, op).chunks();
  }

  /**
   * Returns the reduce-scatter of parts of unequal size in chunks.
   *
   * @param dtype the element type
   * @param op the operator
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel unequalChunks(DType dtype, ReduceOp.Kind op) {
    return family(dtype, op).unequalChunks();
  }

  /**
   * Returns the reduce-scatter of parts of unequal size in packets, which exists where {@link
   * #hasFullPackets} is true.
   *
   * @param dtype the element type
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel unequalTwoShot(DType dtype) {
    Kernel kernel = UNEQUAL_TWO_SHOT.get(dtype);
    if (kernel == null) {
      throw new IllegalArgumentException("no packets for unequal parts of " + dtype.label());
    }
    return kernel;
  }

  /**
   * Returns whether {@link #addParts} exists for a reduction.
   *
   * @param dtype the element type
   * @param op the operator
   */
  public static boolean addsParts(DType dtype, ReduceOp.Kind op) {
    return ADD_PARTS.containsKey(dtype) && (op == ReduceOp.Kind.SUM || op == ReduceOp.Kind.AVG);
  }

  /**
   * Returns the kernel that adds parts in this device's memory, which {@link ReduceCall#parts}
   * specifies, or takes their mean, and waits for nothing.
   *
   * @param dtype the element type
   * @throws IllegalArgumentException if there is no such kernel
   */
  public static Kernel addParts(DType dtype) {
    Kernel kernel = ADD_PARTS.get(dtype);
    if (kernel == null) {
      throw new IllegalArgumentException("no kernel adds parts of " + dtype.label());
    }
    return kernel;
  }

  /**
   * Returns whether the kernels can reduce a type.
   *
   * @param dtype the element type
   */
  public static boolean isReducible(DType dtype) {
    return REDUCE.containsKey(dtype);
  }

  /** Returns all kernels of the image. */
  public static List<Kernel> all() {
    List<Kernel> all = new ArrayList<>();
    all.addAll(List.of(STREAM_BLOCK, PUT_SIGNAL, WAIT_SIGNAL, SIGNAL_BARRIER, BARRIER, EXCHANGE));
    all.add(StridedKernel.copy());
    all.addAll(ElementKernels.all());
    all.addAll(UpdateKernels.all());
    all.addAll(CoalesceKernels.all());
    for (ReduceKernels kernels : REDUCE.values()) {
      for (Family family : List.of(kernels.sums(), kernels.others())) {
        all.addAll(
            List.of(family.oneShot(), family.twoShot(), family.chunks(), family.unequalChunks()));
      }
    }
    all.addAll(UNEQUAL_TWO_SHOT.values());
    all.addAll(ADD_PARTS.values());
    all.addAll(SOME_LANES.values());
    return List.copyOf(all);
  }

  private static Family family(DType dtype, ReduceOp.Kind op) {
    if (!op.isDefinedOn(dtype)) {
      throw new IllegalArgumentException(op + " is not defined on " + dtype.label());
    }
    ReduceKernels kernels = of(dtype);
    return switch (op) {
      case SUM, AVG, PREMUL_SUM -> kernels.sums();
      case PRODUCT, MIN, MAX, BAND, BOR, BXOR -> kernels.others();
    };
  }

  private static ReduceKernels of(DType dtype) {
    ReduceKernels kernels = REDUCE.get(dtype);
    if (kernels == null) {
      throw new IllegalArgumentException(
          "no kernel reduces " + dtype.label() + "; the kernels support " + REDUCE.keySet());
    }
    return kernels;
  }
}
