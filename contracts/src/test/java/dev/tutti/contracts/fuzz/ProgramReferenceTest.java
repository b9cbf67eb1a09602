package dev.tutti.contracts.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests the reference against results computed by hand from the inputs it defines for each rank.
 */
class ProgramReferenceTest {
  private final ProgramReference reference = new ProgramReference(17, true, true);

  private static Step step(DType dtype, ReduceOp.Kind op) {
    return Step.of(3, StepKind.ALL_REDUCE, 2, 50).withData(dtype, op);
  }

  private static Tensor read(DType dtype, byte[] bytes) {
    Tensor tensor = Tensor.allocate(dtype, bytes.length / dtype.byteSize());
    tensor.segment().copyFrom(MemorySegment.ofArray(bytes));
    return tensor.viewAsReal();
  }

  private double[] reals(DType dtype, ReduceOp.Kind op, int rank) {
    return read(dtype, reference.brought(step(dtype, op), 0, rank, 2, 50)).toDoubleArray();
  }

  private double[] reduced(DType dtype, ReduceOp.Kind op) {
    return read(dtype, reference.reduced(step(dtype, op), 0, 2, 50)).toDoubleArray();
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT32", "FLOAT64", "FLOAT16", "BFLOAT16", "COMPLEX64", "COMPLEX128"})
  void realsAreReducedExactly(DType dtype) {
    for (ReduceOp.Kind op : ReduceOp.Kind.values()) {
      if (!op.isDefinedOn(dtype)) {
        continue;
      }
      double[] a = reals(dtype, op, 0);
      double[] b = reals(dtype, op, 1);
      double[] result = reduced(dtype, op);
      assertThat(result).hasSize(dtype.isComplex() ? 100 : 50);
      for (int i = 0; i < result.length; i++) {
        Double expected =
            switch (op) {
              case SUM -> a[i] + b[i];
              case AVG -> a[i] / 2 + b[i] / 2;
              case PRODUCT -> a[i] * b[i];
              case MIN -> Math.min(a[i], b[i]);
              case MAX -> Math.max(a[i], b[i]);
              case PREMUL_SUM -> a[i] - b[i] / 2;
              case BAND, BOR, BXOR -> throw new AssertionError(op);
            };
        assertThat(result[i]).as("%s of %s and %s", op, a[i], b[i]).isEqualTo(expected);
      }
      assertThat(result).as("%s", op).isNotEqualTo(a);
    }
  }

  @Test
  void meansReachTheLimitsAndExtremesAreNan() {
    for (DType dtype : new DType[] {DType.FLOAT16, DType.FLOAT64}) {
      double limit = dtype == DType.FLOAT16 ? 0x1p15 : 0x1p1023;
      assertThat(reduced(dtype, ReduceOp.Kind.AVG)).contains(limit, 1.5 * limit);
      assertThat(reduced(dtype, ReduceOp.Kind.MIN)).contains(Double.NaN);
      assertThat(reduced(dtype, ReduceOp.Kind.MAX)).contains(Double.NaN);
    }
    ProgramReference careful = new ProgramReference(17, false, false);
    Step mean = step(DType.FLOAT16, ReduceOp.Kind.AVG);
    Step least = step(DType.FLOAT16, ReduceOp.Kind.MIN);
    double[] means = read(DType.FLOAT16, careful.reduced(mean, 0, 2, 50)).toDoubleArray();
    assertThat(Arrays.stream(means).map(Math::abs).max().orElseThrow()).isLessThan(256);
    double[] minima = read(DType.FLOAT16, careful.reduced(least, 0, 2, 50)).toDoubleArray();
    assertThat(minima).doesNotContain(Double.NaN);
  }

  @Test
  void integersWrap() {
    DType dtype = DType.INT8;
    double[] a = reals(dtype, ReduceOp.Kind.SUM, 0);
    double[] b = reals(dtype, ReduceOp.Kind.SUM, 1);
    double[] sum = reduced(dtype, ReduceOp.Kind.SUM);
    double[] product = reduced(dtype, ReduceOp.Kind.PRODUCT);
    boolean wrapped = false;
    for (int i = 0; i < sum.length; i++) {
      assertThat(sum[i]).isEqualTo((byte) (long) (a[i] + b[i]));
      assertThat(product[i]).isEqualTo((byte) (long) (a[i] * b[i]));
      wrapped |= sum[i] != a[i] + b[i];
    }
    assertThat(wrapped).isTrue();
  }

  @Test
  void unsignedBytesAreComparedAsSuch() {
    double[] a = reals(DType.UINT8, ReduceOp.Kind.MAX, 0);
    double[] b = reals(DType.UINT8, ReduceOp.Kind.MAX, 1);
    double[] greatest = reduced(DType.UINT8, ReduceOp.Kind.MAX);
    assertThat(Arrays.stream(a).max().orElseThrow()).isGreaterThan(127);
    for (int i = 0; i < greatest.length; i++) {
      assertThat(greatest[i]).isEqualTo(Math.max(a[i], b[i]));
    }
  }

  @Test
  void theAverageOfIntegersTruncates() {
    double[] a = reals(DType.INT32, ReduceOp.Kind.AVG, 0);
    double[] b = reals(DType.INT32, ReduceOp.Kind.AVG, 1);
    double[] average = reduced(DType.INT32, ReduceOp.Kind.AVG);
    boolean odd = false;
    for (int i = 0; i < average.length; i++) {
      assertThat(average[i]).isEqualTo((int) ((a[i] + b[i]) / 2));
      odd |= (a[i] + b[i]) % 2 < 0;
    }
    assertThat(odd).as("a negative sum is odd").isTrue();
  }

  @Test
  void boolsAreReducedByLogic() {
    double[] a = reals(DType.BOOL, ReduceOp.Kind.SUM, 0);
    double[] b = reals(DType.BOOL, ReduceOp.Kind.SUM, 1);
    double[] or = reduced(DType.BOOL, ReduceOp.Kind.SUM);
    double[] and = reduced(DType.BOOL, ReduceOp.Kind.PRODUCT);
    double[] xor = reduced(DType.BOOL, ReduceOp.Kind.BXOR);
    for (int i = 0; i < or.length; i++) {
      assertThat(or[i]).isEqualTo(Math.max(a[i], b[i]));
      assertThat(and[i]).isEqualTo(a[i] * b[i]);
      assertThat(xor[i]).isEqualTo(a[i] == b[i] ? 0 : 1);
    }
  }

  @Test
  void sparseSumsCountEachPlace() {
    Step step =
        Step.of(5, StepKind.ALL_REDUCE_SPARSE, 2, 3, 2).withData(DType.INT32, ReduceOp.Kind.SUM);
    int[] first = reference.places(step, 0, 4);
    int[] second = reference.places(step, 1, 4);
    long[] sum = new long[4];
    for (int i = 0; i < 3; i++) {
      sum[first[i]] += reference.addends(step, 0)[i];
    }
    for (int i = 0; i < 2; i++) {
      sum[second[i]] += reference.addends(step, 1)[i];
    }
    long[][] actual = reference.sparseSum(step, 2, 4);
    assertThat(actual[0]).isEqualTo(sum);
    assertThat(actual[1])
        .satisfies(named -> assertThat(named[0] + named[1] + named[2] + named[3]).isEqualTo(5));
  }

  @Test
  void movedBytesDifferByRankAndStep() {
    Step step = step(DType.FLOAT32, ReduceOp.Kind.SUM);
    byte[] bytes = reference.moved(step, 0, 0, 50);
    assertThat(bytes).hasSize(200).isNotEqualTo(reference.moved(step, 0, 1, 50));
    assertThat(bytes).isNotEqualTo(reference.moved(step, 1, 0, 50));
    assertThat(reference.moved(step(DType.BOOL, ReduceOp.Kind.SUM), 0, 0, 50)).containsOnly(0, 1);
  }
}
