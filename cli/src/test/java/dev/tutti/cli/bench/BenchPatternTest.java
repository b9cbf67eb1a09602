package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class BenchPatternTest {
  private static final int RANKS = 4;

  private static Tensor filled(DType dtype, ReduceOp op, int rank, long numel) {
    Tensor tensor = Tensor.allocate(dtype, numel);
    BenchPattern.input(dtype, op, RANKS, rank).fill(tensor, 0);
    return tensor;
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void findsItsOwnElementsRight(DType dtype) {
    Tensor tensor = filled(dtype, ReduceOp.SUM, 2, 20_000);
    BenchPattern pattern = BenchPattern.input(dtype, ReduceOp.SUM, RANKS, 2);
    assertThat(pattern.countWrong(tensor, 0)).isZero();
    assertThat(pattern.countWrong(tensor.narrow(0, 9000, 11_000), 9000)).isZero();
    assertThat(pattern.countWrong(tensor.narrow(0, 9000, 11_000), 9001)).isGreaterThan(5000);
  }

  @Test
  void countsEachWrongElement() {
    Tensor tensor = filled(DType.FLOAT32, ReduceOp.SUM, 1, 20_000);
    BenchPattern pattern = BenchPattern.input(DType.FLOAT32, ReduceOp.SUM, RANKS, 1);
    for (long index : new long[] {0, 8190, 8191, 19_999}) {
      tensor.setDouble(index, -1.0);
    }
    assertThat(pattern.countWrong(tensor, 0)).isEqualTo(4);
  }

  @Test
  void givesRanksDifferentElements() {
    BenchPattern other = BenchPattern.input(DType.INT32, ReduceOp.SUM, RANKS, 3);
    assertThat(other.countWrong(filled(DType.INT32, ReduceOp.SUM, 0, 10_000), 0))
        .isGreaterThan(5000);
  }

  @ParameterizedTest
  @CsvSource({
    "sum, 4",
    "avg, 4",
    "product, 4",
    "min, 4",
    "max, 4",
    "band, 4",
    "bor, 4",
    "bxor, 4",
    "sum, 8",
  })
  void reducesAsJavaDoes(String name, int ranks) {
    ReduceOp op = ReduceOp.ofName(name);
    long[][] values = new long[ranks][];
    for (int rank = 0; rank < ranks; rank++) {
      Tensor input = Tensor.allocate(DType.INT64, 1000);
      BenchPattern.input(DType.INT64, op, ranks, rank).fill(input, 0);
      values[rank] = input.toLongArray();
    }
    Tensor expected = Tensor.allocate(DType.INT64, 1000);
    for (int k = 0; k < 1000; k++) {
      long result = values[0][k];
      for (int rank = 1; rank < ranks; rank++) {
        result = combine(op, result, values[rank][k]);
      }
      expected.setLong(k, name.equals("avg") ? result / ranks : result);
    }
    assertThat(BenchPattern.reduced(DType.INT64, op, ranks).countWrong(expected, 0)).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "FLOAT32, 3",
    "FLOAT32, 7",
    "FLOAT64, 5",
    "FLOAT16, 3",
    "FLOAT16, 6",
    "BFLOAT16, 3",
    "BFLOAT16, 7",
    "COMPLEX64, 3",
    "FLOAT32, 49",
    "BFLOAT16, 4",
  })
  void takesAnAverageThatDividesBeforeItAdds(DType dtype, int ranks) {
    double part = rounded(dtype, 1.0 / ranks);
    Tensor sum = Tensor.allocate(dtype, 10_000);
    Tensor reals = sum.viewAsReal().flatten();
    for (int rank = 0; rank < ranks; rank++) {
      Tensor input = Tensor.allocate(dtype, 10_000);
      BenchPattern.input(dtype, ReduceOp.AVG, ranks, rank).fill(input, 0);
      Tensor parts = input.viewAsReal().flatten();
      for (int k = 0; k < parts.numel(); k++) {
        reals.setDouble(k, reals.getDouble(k) + rounded(dtype, parts.getDouble(k) * part));
      }
    }
    BenchPattern pattern = BenchPattern.reduced(dtype, ReduceOp.AVG, ranks);
    assertThat(pattern.countWrong(sum, 0)).isZero();
    reals.setDouble(0, reals.getDouble(0) + 1);
    reals.setDouble(9000, Double.NaN);
    assertThat(pattern.countWrong(sum, 0)).isEqualTo(2);
  }

  private static double rounded(DType dtype, double value) {
    Tensor tensor = Tensor.allocate(dtype.toReal(), 1);
    tensor.setDouble(0, value);
    return tensor.getDouble(0);
  }

  @Test
  void takesNoOtherAverageWhereTheDivisionIsExact() {
    BenchPattern pattern = BenchPattern.reduced(DType.FLOAT32, ReduceOp.AVG, RANKS);
    Tensor right = Tensor.allocate(DType.FLOAT32, 100);
    pattern.fill(right, 0);
    assertThat(pattern.countWrong(right, 0)).isZero();
    right.setDouble(7, Math.nextUp((float) right.getDouble(7)));
    assertThat(pattern.countWrong(right, 0)).isOne();
  }

  private static long combine(ReduceOp op, long a, long b) {
    return switch (op.kind()) {
      case SUM, AVG -> a + b;
      case PRODUCT -> a * b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case BAND -> a & b;
      case BOR -> a | b;
      case BXOR -> a ^ b;
      case PREMUL_SUM -> throw new AssertionError();
    };
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16", "INT8", "UINT8"})
  void sumsFitTheSmallTypes(DType dtype) {
    for (int ranks : new int[] {1, 2, 4, 64, 127}) {
      double sum = 0;
      for (int rank = 0; rank < ranks; rank++) {
        Tensor input = Tensor.allocate(dtype, BenchPattern.PERIOD);
        BenchPattern.input(dtype, ReduceOp.SUM, ranks, rank).fill(input, 0);
        double most = 0;
        for (double value : input.toDoubleArray()) {
          most = Math.max(most, value);
        }
        sum += most;
      }
      assertThat(sum).isBetween(1.0, 127.0);
    }
  }
}
