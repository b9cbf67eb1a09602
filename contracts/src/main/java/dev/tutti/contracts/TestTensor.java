package dev.tutti.contracts;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.Arrays;
import java.util.List;

/**
 * A tensor under test, together with the memory around it, so that a test sees whether only the
 * tensor's elements were written. Values are passed and read as real numbers: a complex element
 * counts as two, and a float8 element is its byte.
 */
final class TestTensor {
  private static final byte GAP = (byte) 0xa5;

  private final ContractSubject subject;
  private final Layout layout;
  private final long[] shape;
  private final Tensor base;
  private final Tensor view;

  private TestTensor(ContractSubject subject, Layout layout, DType dtype, long[] shape) {
    this.subject = subject;
    this.layout = layout;
    this.shape = shape;
    this.base = layout.allocate(subject, dtype, shape);
    this.view = layout.view(base, shape);
  }

  /**
   * Creates a tensor.
   *
   * @param values the elements in row-major order, exact in the type
   */
  static TestTensor of(
      ContractSubject subject, Layout layout, DType dtype, double[] values, long... shape) {
    TestTensor tensor = new TestTensor(subject, layout, dtype, shape);
    Tensor host = untouched(tensor.base);
    write(layout.view(host, shape), values);
    if (layout == Layout.HEAP) {
      tensor.base.copyFrom(host);
    } else {
      subject.copyIn(host, tensor.base);
    }
    return tensor;
  }

  /** Returns the tensor. */
  Tensor view() {
    return view;
  }

  /** Returns the tensors of several test tensors. */
  static List<Tensor> views(List<TestTensor> tensors) {
    return tensors.stream().map(TestTensor::view).toList();
  }

  /** Returns the elements in row-major order. */
  double[] values() {
    return numbers(hostView()).toDoubleArray();
  }

  /** Returns the bytes of the elements in row-major order. */
  byte[] bits() {
    return hostView().copy().segment().toArray(JAVA_BYTE);
  }

  /** Asserts the exact elements; zeros of both signs are equal. */
  void assertValues(String what, double... expected) {
    assertClose(what, expected, new double[expected.length]);
  }

  /** Asserts the elements that {@link Member#toMove} gave to a rank. */
  void assertMoved(String what, int rank, long seed) {
    assertValues(what, TestData.toMove(view.dtype(), rank, seed, view.numel()));
  }

  /** Asserts that each tensor, in their order, has the elements that a rank had to move. */
  static void assertMovedFromEach(String what, List<TestTensor> tensors, long seed) {
    for (int rank = 0; rank < tensors.size(); rank++) {
      tensors.get(rank).assertMoved(what + " " + rank, rank, seed);
    }
  }

  /** Asserts the elements, each within its tolerance, and that nothing else was written. */
  void assertClose(String what, double[] expected, double[] tolerance) {
    double[] actual = values();
    if (actual.length != expected.length) {
      throw new AssertionError(
          what + ": has " + actual.length + " elements, expected " + expected.length);
    }
    for (int i = 0; i < actual.length; i++) {
      boolean same =
          actual[i] == expected[i]
              || (Double.isNaN(actual[i]) && Double.isNaN(expected[i]))
              || Math.abs(actual[i] - expected[i]) <= tolerance[i];
      if (!same) {
        throw new AssertionError(
            "%s: element %s is %s, expected %s%s; %s %s holds %s, expected %s"
                .formatted(
                    what,
                    i,
                    actual[i],
                    expected[i],
                    tolerance[i] > 0 ? " within " + tolerance[i] : "",
                    layout,
                    view,
                    excerpt(actual, i),
                    excerpt(expected, i)));
      }
    }
    assertGapsUntouched(what);
  }

  /** Asserts that nothing except the elements was written. */
  void assertGapsUntouched(String what) {
    if (base.numel() == view.numel()) {
      return;
    }
    Tensor actual = hostBase();
    numbers(layout.view(actual, shape)).fill(0);
    Tensor expected = untouched(base);
    numbers(layout.view(expected, shape)).fill(0);
    long at = actual.segment().mismatch(expected.segment());
    if (at >= 0) {
      throw new AssertionError(
          "%s: byte %s outside the elements of %s %s was overwritten"
              .formatted(what, at, layout, view));
    }
  }

  private static Tensor numbers(Tensor tensor) {
    return tensor.dtype().isOpaque() ? tensor.view(DType.UINT8) : tensor.viewAsReal();
  }

  private static Tensor untouched(Tensor like) {
    Tensor host = Tensor.allocate(like.dtype(), like.shape());
    host.segment().fill(GAP);
    return host;
  }

  private static void write(Tensor target, double[] values) {
    Tensor reals = numbers(target);
    if (reals.numel() != values.length) {
      throw new IllegalArgumentException(values.length + " values for " + target.describe());
    }
    for (int i = 0; i < values.length; i++) {
      reals.setDouble(i, values[i]);
    }
  }

  private static String excerpt(double[] values, int around) {
    int from = Math.max(0, around - 2);
    int to = Math.min(values.length, around + 6);
    return "[" + from + "..]=" + Arrays.toString(Arrays.copyOfRange(values, from, to));
  }

  private Tensor hostView() {
    return layout.view(hostBase(), shape);
  }

  private Tensor hostBase() {
    return layout == Layout.HEAP ? base.copy() : subject.copyOut(base);
  }
}
