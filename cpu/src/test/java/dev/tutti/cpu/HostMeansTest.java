package dev.tutti.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp.Kind;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Compares means with exact arithmetic. */
class HostMeansTest {
  private static final int COUNT = 3001;

  private static final int[] SIZES = {1, 2, 3, 4, 5, 7, 8, 16, 33};

  static Stream<DType> integers() {
    return Stream.of(DType.values()).filter(DType::isInteger);
  }

  static Stream<DType> reals() {
    return Stream.of(DType.values())
        .filter(dtype -> Kind.AVG.isDefinedOn(dtype) && dtype.isFloatingPoint());
  }

  /**
   * Returns the spacing of the numbers of a type next to 1, and its smallest and largest number.
   */
  private static double[] numbers(DType dtype) {
    return switch (dtype) {
      case FLOAT16 -> new double[] {0x1p-10, 0x1p-24, 65504};
      case BFLOAT16 -> new double[] {0x1p-7, 0x1p-133, 0x1.fep127};
      case FLOAT32 -> new double[] {0x1p-23, 0x1p-149, Float.MAX_VALUE};
      default -> new double[] {0x1p-52, Double.MIN_VALUE, Double.MAX_VALUE};
    };
  }

  private static Tensor[] inputs(DType dtype, int size, Random random) {
    Tensor[] inputs = new Tensor[size];
    double[] numbers = numbers(dtype);
    for (int k = 0; k < size; k++) {
      inputs[k] = Tensor.allocate(dtype, COUNT);
      for (int i = 0; i < COUNT; i++) {
        double unit = random.nextDouble(0.5, 1) * (random.nextInt(5) == 0 ? -1 : 1);
        double value =
            switch (i % 4) {
              case 0 -> numbers[2] * unit;
              case 1 -> i % 8 == 1 ? numbers[2] : -numbers[2];
              case 2 -> numbers[1] * random.nextInt(40);
              default -> unit;
            };
        inputs[k].setDouble(i, value);
      }
    }
    return inputs;
  }

  private static Tensor mean(DType dtype, Tensor[] inputs) {
    Tensor result = Tensor.allocate(dtype, COUNT);
    MemorySegment[] segments = Stream.of(inputs).map(Tensor::segment).toArray(MemorySegment[]::new);
    HostReducer.combineAll(Kind.AVG, dtype, result.segment(), 0, segments, 0, COUNT);
    return result;
  }

  @ParameterizedTest
  @MethodSource("reals")
  void meansOfRealNumbersAreNextToTheExactOnesUpToTheLimits(DType dtype) {
    Random random = new Random(5);
    double[] numbers = numbers(dtype);
    double accumulated = dtype == DType.FLOAT64 ? 0x1p-53 : 0x1p-24;
    boolean half = dtype.byteSize() == 2;
    for (int size : SIZES) {
      Tensor[] inputs = inputs(dtype, size, random);
      Tensor means = mean(dtype, inputs);
      for (int i = 0; i < COUNT; i++) {
        BigDecimal sum = BigDecimal.ZERO;
        BigDecimal magnitudes = BigDecimal.ZERO;
        for (Tensor input : inputs) {
          BigDecimal value = new BigDecimal(input.getDouble(i));
          sum = sum.add(value);
          magnitudes = magnitudes.add(value.abs());
        }
        double exact = sum.divide(BigDecimal.valueOf(size), MathContext.DECIMAL128).doubleValue();
        double most =
            magnitudes.divide(BigDecimal.valueOf(size), MathContext.DECIMAL128).doubleValue();
        // The sum is scaled by at most half as much again as what its size needs.
        double smallest = half ? numbers[1] / 2 : size * numbers[1];
        double tolerance =
            (size + 1) * accumulated * most
                + Math.max(smallest, Math.abs(exact) * numbers[0] / (half ? 2 : 1));
        double got = means.getDouble(i);
        assertThat(Math.abs(got - exact))
            .as("%s of %d: %s for %s", dtype, size, got, exact)
            .isLessThanOrEqualTo(tolerance);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("integers")
  void meansOfIntegersAreTruncatedOnce(DType dtype) {
    Random random = new Random(6);
    for (int size : SIZES) {
      Tensor[] inputs = new Tensor[size];
      for (int k = 0; k < size; k++) {
        inputs[k] = Tensor.allocate(dtype, COUNT);
        for (int i = 0; i < COUNT; i++) {
          // The bits of a type, or its limits on all sides, or small numbers.
          int shift = 64 - 8 * dtype.byteSize();
          long limit = dtype == DType.UINT8 ? 255 : Long.MAX_VALUE >> shift;
          long value =
              switch (i % 3) {
                case 0 -> random.nextLong() >> shift;
                case 1 -> i % 2 == 0 ? limit : dtype == DType.UINT8 ? 0 : -limit - 1;
                default -> random.nextInt(9) - (dtype == DType.UINT8 ? 0 : 4);
              };
          inputs[k].setLong(i, dtype == DType.UINT8 ? value & 255 : value);
        }
      }
      Tensor means = mean(dtype, inputs);
      MemorySegment wide = MemorySegment.ofArray(new long[COUNT * IntegerMeans.wideCount(dtype)]);
      MemorySegment sums = MemorySegment.ofArray(new long[COUNT * IntegerMeans.wideCount(dtype)]);
      for (Tensor input : inputs) {
        IntegerMeans.widen(input, wide, 0);
        long count = wide.byteSize() / 8;
        HostReducer.reduce(Kind.SUM, IntegerMeans.wideType(dtype), sums, 0, wide, 0, count);
      }
      Tensor steps = Tensor.allocate(dtype, COUNT);
      IntegerMeans.narrow(sums, steps, size);
      for (int i = 0; i < COUNT; i++) {
        BigInteger sum = BigInteger.ZERO;
        for (Tensor input : inputs) {
          sum = sum.add(BigInteger.valueOf(input.getLong(i)));
        }
        long exact = sum.divide(BigInteger.valueOf(size)).longValueExact();
        assertThat(means.getLong(i)).as("%s of %d inputs", dtype, size).isEqualTo(exact);
        assertThat(steps.getLong(i)).as("%s of %d steps", dtype, size).isEqualTo(exact);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64", "COMPLEX64", "COMPLEX128"})
  void meansOfWhatIsNotFiniteAreNotFinite(DType dtype) {
    DType real = dtype.toReal();
    MemorySegment[] inputs = new MemorySegment[3];
    for (int k = 0; k < 3; k++) {
      Tensor values = Tensor.allocate(real, 4);
      values.setDouble(0, k == 1 ? Double.POSITIVE_INFINITY : 1);
      values.setDouble(1, k == 1 ? Double.NaN : 1);
      values.setDouble(2, k == 1 ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY);
      values.setDouble(3, -0.0);
      inputs[k] = values.segment();
    }
    Tensor result = Tensor.allocate(real, 4);
    int count = 4 * real.byteSize() / dtype.byteSize();
    HostReducer.combineAll(Kind.AVG, dtype, result.segment(), 0, inputs, 0, count);
    assertThat(result.toDoubleArray())
        .containsExactly(Double.POSITIVE_INFINITY, Double.NaN, Double.NaN, -0.0);
  }

  @Test
  void meansOfHalvesAreRoundedOnce() {
    MemorySegment one = MemorySegment.ofArray(new short[] {0x3f80});
    MemorySegment more = MemorySegment.ofArray(new short[] {0x3f85});
    MemorySegment out = MemorySegment.ofArray(new short[1]);
    MemorySegment[] inputs = {one, one, more};
    HostReducer.combineAll(Kind.AVG, DType.BFLOAT16, out, 0, inputs, 0, 1);
    assertThat(out.toArray(ValueLayout.JAVA_SHORT)).containsExactly(0x3f82);
  }
}
