package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** A case of a reduction: a type, an operator, the input of each rank, and the expected result. */
final class ReductionCase {
  /** The case whose operator the rank's thread asked for last, until its result is checked. */
  private static final ThreadLocal<@Nullable ReductionCase> CURRENT = new ThreadLocal<>();

  private final DType dtype;
  private final ReduceOp.Kind kind;
  private final long numel;
  private final List<double[]> inputs;
  private final double[] expected;
  private final double[] tolerance;

  private ReductionCase(
      DType dtype, ReduceOp.Kind kind, long numel, List<double[]> inputs, boolean rounds) {
    this.dtype = dtype;
    this.kind = kind;
    this.numel = numel;
    this.inputs = inputs;
    this.expected = Reference.reduce(kind, dtype, inputs);
    this.tolerance =
        rounds
            ? Reference.roundingTolerance(kind, dtype, inputs)
            : Reference.exactTolerance(kind, dtype, expected);
  }

  /** Creates a case with an exact result; see {@link TestData#toReduce}. */
  static ReductionCase exact(ContractWorld world, DType dtype, ReduceOp.Kind kind, long numel) {
    int size = world.size();
    long seed = (dtype.label() + kind).hashCode();
    boolean hasExtremes =
        kind == ReduceOp.Kind.AVG ? world.subject().dividesTheSum() : world.subject().nanWins();
    List<double[]> inputs =
        IntStream.range(0, size)
            .mapToObj(rank -> TestData.toReduce(dtype, kind, size, rank, seed, numel, hasExtremes))
            .toList();
    boolean roundsOften =
        kind == ReduceOp.Kind.AVG && Reference.isReal(dtype) && !world.subject().dividesTheSum();
    return new ReductionCase(dtype, kind, numel, inputs, roundsOften);
  }

  /** Creates an exact case for each type and operator that the backend declares. */
  static List<ReductionCase> exactOfEachKind(ContractWorld world, long numel) {
    List<ReductionCase> cases = new ArrayList<>();
    for (DType dtype : DType.values()) {
      for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
        if (world.capabilities().canReduce(dtype, TestData.op(kind, 0))) {
          cases.add(exact(world, dtype, kind, numel));
        }
      }
    }
    return cases;
  }

  /**
   * Creates a case of real numbers for each floating-point type and operator of the backend, but
   * for products over many ranks.
   */
  static List<ReductionCase> realOfEachKind(ContractWorld world, int numel) {
    List<ReductionCase> cases = new ArrayList<>();
    for (DType dtype : DType.values()) {
      for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
        if (dtype.isFloatingPoint()
            && world.capabilities().canReduce(dtype, TestData.op(kind, 0))
            && !(kind == ReduceOp.Kind.PRODUCT && world.size() > 8)) {
          cases.add(real(world, dtype, kind, numel));
        }
      }
    }
    return cases;
  }

  private static ReductionCase real(
      ContractWorld world, DType dtype, ReduceOp.Kind kind, int numel) {
    List<double[]> inputs =
        IntStream.range(0, world.size())
            .mapToObj(
                rank -> roundTo(dtype, TestData.realNumbers(rank, kind.name().hashCode(), numel)))
            .toList();
    return new ReductionCase(dtype, kind, numel, inputs, true);
  }

  private static double[] roundTo(DType dtype, double[] values) {
    Tensor rounded = Tensor.allocate(dtype, values.length);
    for (int i = 0; i < values.length; i++) {
      rounded.setDouble(i, values[i]);
    }
    return rounded.toDoubleArray();
  }

  /** Returns whether it is a mean, minimum or maximum, whose inputs have extreme numbers. */
  boolean isOfExtremes() {
    return kind == ReduceOp.Kind.AVG || kind == ReduceOp.Kind.MIN || kind == ReduceOp.Kind.MAX;
  }

  /** Returns the number of elements of one of the equal parts of the input. */
  long partNumel() {
    return numel / inputs.size();
  }

  /** Returns the operator of a rank; with PREMUL_SUM, each rank has a different factor. */
  ReduceOp op(int rank) {
    CURRENT.set(this);
    return TestData.op(kind, rank);
  }

  /** Returns the input of a rank as a vector. */
  TestTensor input(Member member) {
    return input(member, Layout.CONTIGUOUS, numel);
  }

  /** Returns the input of a rank. */
  TestTensor input(Member member, Layout layout, long... shape) {
    return member.tensor(layout, dtype, inputs.get(member.rank()), shape);
  }

  /** Returns the equal parts of a rank's input. */
  List<TestTensor> inputParts(Member member, Layout layout, long... shape) {
    double[] input = inputs.get(member.rank());
    return member.ranks().stream()
        .map(part -> member.tensor(layout, dtype, part(input, part), shape))
        .toList();
  }

  /** Returns the parts of a rank's input that have the given numbers of elements. */
  List<TestTensor> inputParts(Member member, long[] splits) {
    return member.ranks().stream()
        .map(
            part ->
                member.tensor(dtype, part(inputs.get(member.rank()), splits, part), splits[part]))
        .toList();
  }

  /** Returns memory for a result or a part of it, filled with a value that no result has. */
  TestTensor output(Member member, Layout layout, long... shape) {
    return member.blank(layout, dtype, shape);
  }

  /** Asserts that a tensor holds the result. */
  void check(String what, TestTensor result) {
    result.assertClose(what + " of " + this + hint(), expected, tolerance);
    CURRENT.remove();
  }

  /**
   * Returns what the backend may have to declare, if it works differently from what it declares
   * now.
   */
  private String hint() {
    if (kind == ReduceOp.Kind.AVG) {
      return " (if the backend divides each rank's contribution, or the sum may overflow, let"
          + " dividesTheSum return false)";
    }
    return Reference.isReal(dtype) && (kind == ReduceOp.Kind.MIN || kind == ReduceOp.Kind.MAX)
        ? " (if a number wins against NaN, let nanWins return false)"
        : "";
  }

  /** Runs a body; an exception thrown during a reduction names its type and operator. */
  static <T> T naming(Callable<T> body) throws Exception {
    CURRENT.remove();
    try {
      return body.call();
    } catch (TuttiException | UnsupportedOperationException | IllegalArgumentException e) {
      ReductionCase current = CURRENT.get();
      if (current == null) {
        throw e;
      }
      throw new AssertionError(
          ("the reduction of %s failed; if the backend does not support it, its capabilities must"
                  + " not declare it: %s")
              .formatted(current, e),
          e);
    } finally {
      CURRENT.remove();
    }
  }

  /** Asserts that a tensor holds one of the equal parts of the result. */
  void checkPart(String what, TestTensor result, int part) {
    checkPart(what, result, equalSplits(), part);
  }

  /** Asserts that a tensor holds one of the parts of the result. */
  void checkPart(String what, TestTensor result, long[] splits, int part) {
    result.assertClose(
        what + " of " + this + hint() + ", part " + part,
        part(expected, splits, part),
        part(tolerance, splits, part));
    CURRENT.remove();
  }

  /**
   * Asserts that a tensor holds a rank's input, except for the rank's part, one of the equal parts,
   * which holds the result.
   */
  void checkPartInPlace(String what, Member member, TestTensor tensor) {
    checkPartInPlace(what, member, tensor, equalSplits());
  }

  /**
   * Asserts that a tensor holds a rank's input, except for the rank's part, which holds the result.
   */
  void checkPartInPlace(String what, Member member, TestTensor tensor, long[] splits) {
    double[] whole = inputs.get(member.rank()).clone();
    double[] own = part(expected, splits, member.rank());
    System.arraycopy(own, 0, whole, start(splits, member.rank()), own.length);
    tensor.assertClose(what + " of " + this + hint(), whole, tolerance);
    CURRENT.remove();
  }

  /** Asserts that a tensor still holds a rank's input. */
  void checkInputUntouched(String what, Member member, TestTensor input) {
    input.assertValues(what + " of " + this + ", input", inputs.get(member.rank()));
  }

  /** Asserts that a tensor still holds one of the equal parts of a rank's input. */
  void checkInputPartUntouched(String what, Member member, TestTensor input, int part) {
    input.assertValues(
        what + " of " + this + ", inputs[" + part + "]", part(inputs.get(member.rank()), part));
  }

  private double[] part(double[] whole, int part) {
    return part(whole, equalSplits(), part);
  }

  private double[] part(double[] whole, long[] splits, int part) {
    int start = start(splits, part);
    return Arrays.copyOfRange(whole, start, start + TestData.reals(dtype, splits[part]));
  }

  private int start(long[] splits, int part) {
    return TestData.reals(dtype, Arrays.stream(splits, 0, part).sum());
  }

  private long[] equalSplits() {
    long[] splits = new long[inputs.size()];
    Arrays.fill(splits, partNumel());
    return splits;
  }

  @Override
  public String toString() {
    return dtype.label() + " " + kind + " with " + numel + " elements";
  }
}
