package dev.tutti.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.tutti.DType;
import dev.tutti.ReduceOp.Kind;
import dev.tutti.Tensor;
import dev.tutti.cpu.reduce.ElementBlocks;
import dev.tutti.cpu.reduce.ScalarReduction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

@Order(1)
class HostReducerTest {
  private static final int GUARD = 16;
  private static final byte[] RANDOM_BYTES = new byte[9 << 20];
  private static final double[] SPECIALS = {
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    3,
    65504,
    65520,
    -65504,
    0x1p-14,
    0x1p-24,
    -0x1p-24,
    0x1.8p-24,
    0x1p-126,
    0x1p-133,
    0x1p-149,
    Float.MAX_VALUE,
    -Float.MAX_VALUE,
    0x1.fep127,
    Double.MAX_VALUE,
    Double.MIN_VALUE,
    Double.POSITIVE_INFINITY,
    Double.NEGATIVE_INFINITY,
    Double.NaN
  };

  @BeforeAll
  static void draw() {
    new Random(7).nextBytes(RANDOM_BYTES);
  }

  static Stream<Arguments> operators() {
    return Arrays.stream(DType.values())
        .flatMap(
            dtype ->
                Arrays.stream(Kind.values())
                    .filter(kind -> kind.isDefinedOn(dtype))
                    .map(kind -> arguments(dtype, kind)));
  }

  @ParameterizedTest
  @MethodSource("operators")
  void everyLengthAndOffsetGivesWhatAPlainLoopGives(DType dtype, Kind kind) {
    Random random = new Random(dtype.label().hashCode() * 31L + kind.name().hashCode());
    int unit = dtype.byteSize();
    int block = ElementBlocks.of(kind, dtype.toReal()).capacity() / unit;
    int[] lengths = {0, 1, 2, 3, 5, 8, 31, block - 1, block, block + 1, 2 * block + 3};
    for (int count : lengths) {
      for (int offset : new int[] {0, 1, 3, 7}) {
        byte[] a = elements(random, dtype, GUARD + offset, count);
        byte[] b = elements(random, dtype, GUARD + 2 * offset, count);
        byte[] expected = plain(kind, dtype, a, GUARD + offset, b, GUARD + 2 * offset, count);
        for (boolean heap : new boolean[] {true, false}) {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment accumulator = place(a, heap, arena);
            MemorySegment input = place(b, !heap, arena);
            HostReducer.reduce(
                kind, dtype, accumulator, GUARD + offset, input, GUARD + 2L * offset, count);
            assertSame(dtype, accumulator, expected, GUARD + offset, count);
            assertThat(input.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(b);
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("operators")
  void longRunsGiveWhatTheirPiecesGive(DType dtype, Kind kind) {
    int count = (4 << 20) / dtype.byteSize() + 1027;
    byte[] bytes = Arrays.copyOf(RANDOM_BYTES, 2 * count * dtype.byteSize());
    MemorySegment inputs = MemorySegment.ofArray(bytes);
    MemorySegment whole = MemorySegment.ofArray(bytes.clone());
    MemorySegment pieces = MemorySegment.ofArray(bytes.clone());
    long half = (long) count * dtype.byteSize();
    HostReducer.reduce(kind, dtype, whole, 0, inputs, half, count);
    for (int done = 0; done < count; done += 100_003) {
      int n = Math.min(100_003, count - done);
      long at = (long) done * dtype.byteSize();
      HostReducer.reduce(kind, dtype, pieces, at, inputs, half + at, n);
    }
    if (whole.mismatch(pieces) >= 0) {
      // Which NaN results from a sum of two NaNs depends on how far the loop has been compiled.
      assertSame(dtype, whole, pieces.toArray(ValueLayout.JAVA_BYTE), 0, count);
    }
  }

  @ParameterizedTest
  @MethodSource("operators")
  void twoRunsAreReducedIntoAThird(DType dtype, Kind kind) {
    Random random = new Random(3);
    int count = 4099;
    byte[] a = elements(random, dtype, 0, count);
    byte[] b = elements(random, dtype, 5, count);
    byte[] expected = plain(kind, dtype, a, 0, b, 5, count);
    byte[] out = new byte[a.length + 9];
    MemorySegment left = MemorySegment.ofArray(a.clone());
    MemorySegment right = MemorySegment.ofArray(b.clone());
    MemorySegment target = MemorySegment.ofArray(out);

    HostReducer.combine(kind, dtype, target, 3, left, 0, right, 5, count);
    assertSame(dtype, target, 3, expected, 0, count);
    assertThat(left.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(a);
    assertThat(out[0] | out[1] | out[2]).isZero();
    assertThat(Arrays.copyOfRange(out, 3 + count * dtype.byteSize(), out.length)).containsOnly(0);

    HostReducer.combine(kind, dtype, right, 5, left, 0, right, 5, count);
    assertSame(dtype, right, 5, expected, 0, count);
  }

  /** Means of more than two runs have their own test, since they are not computed in steps. */
  static Stream<Arguments> operatorsInSteps() {
    return operators().filter(arguments -> arguments.get()[1] != Kind.AVG);
  }

  @ParameterizedTest
  @MethodSource("operatorsInSteps")
  void anyNumberOfRunsIsReducedInOrder(DType dtype, Kind kind) {
    Random random = new Random(5);
    int count = 2500;
    for (int n = 1; n <= 5; n++) {
      byte[][] inputs = new byte[n][];
      MemorySegment[] segments = new MemorySegment[n];
      for (int i = 0; i < n; i++) {
        inputs[i] = elements(random, dtype, 4, count);
        segments[i] = MemorySegment.ofArray(inputs[i].clone());
      }
      byte[] expected = plainAll(kind, dtype, inputs, 4, count);
      MemorySegment last = segments[n - 1];
      HostReducer.combineAll(kind, dtype, last, 4, segments, 4, count);
      assertSame(dtype, last, 4, expected, 4, count);
      for (int i = 0; i < n - 1; i++) {
        assertThat(segments[i].toArray(ValueLayout.JAVA_BYTE)).isEqualTo(inputs[i]);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("operatorsInSteps")
  void eachRunMayBeginAtAnOffsetOfItsOwn(DType dtype, Kind kind) {
    Random random = new Random(6);
    int count = 2500;
    byte[][] inputs = new byte[3][];
    MemorySegment[] segments = new MemorySegment[3];
    for (int i = 0; i < 3; i++) {
      inputs[i] = elements(random, dtype, 4, count);
      byte[] shifted = new byte[inputs[i].length + 7 * i];
      System.arraycopy(inputs[i], 0, shifted, 7 * i, inputs[i].length);
      segments[i] = MemorySegment.ofArray(shifted);
    }
    byte[] expected = plainAll(kind, dtype, inputs, 4, count);
    long[] offsets = {4, 11, 18};
    HostReducer.combineAll(kind, dtype, segments[1], 11, segments, offsets, count);
    assertSame(dtype, segments[1], 11, expected, 4, count);
    assertThatThrownBy(
            () ->
                HostReducer.combineAll(
                    kind, dtype, segments[1], 11, segments, new long[] {4, 11}, count))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("3 inputs need as many offsets, not 2");
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16"})
  void everyHalfIsDividedAndScaledWithOneRounding(DType dtype) {
    int count = 1 << 16;
    for (int divisor : new int[] {1, 2, 3, 7, 10, 1000, 1024, 1025, 4097, Integer.MAX_VALUE}) {
      MemorySegment memory = everyHalf(count);
      HostReducer.divide(dtype, memory, 0, count, divisor);
      for (int i = 0; i < count; i++) {
        double exact = ScalarReduction.widen(dtype, i) / (double) divisor;
        assertHalf(dtype, memory, i, ScalarReduction.narrow(dtype, exact));
      }
    }
    for (double factor : new double[] {1, -0.5, 1 / 3.0, 0.1f, 1e30, 1e-30, 1e300, 1e-300}) {
      MemorySegment memory = everyHalf(count);
      HostReducer.scale(dtype, memory, 0, count, factor);
      for (int i = 0; i < count; i++) {
        double product = ScalarReduction.widen(dtype, i) * factor;
        assertHalf(dtype, memory, i, ScalarReduction.narrow(dtype, product));
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT32", "FLOAT64", "COMPLEX64", "COMPLEX128"})
  void floatsAreDividedAndScaledWithOneRounding(DType dtype) {
    Random random = new Random(11);
    int count = 3001;
    int parts = count * dtype.byteSize() / dtype.toReal().byteSize();
    byte[] bytes = elements(random, dtype, 3, count);
    DType real = dtype.toReal();
    for (int divisor : new int[] {1, 3, 10, (1 << 24) + 1, Integer.MAX_VALUE}) {
      MemorySegment memory = MemorySegment.ofArray(bytes.clone());
      HostReducer.divide(dtype, memory, 3, count, divisor);
      byte[] expected = mapped(real, bytes, 3, parts, x -> x / divisor);
      assertSame(real, memory, expected, 3, parts);
    }
    for (double factor : new double[] {-1, 0.1, 0.1f, 1e-40, 3}) {
      MemorySegment memory = MemorySegment.ofArray(bytes.clone());
      HostReducer.scale(dtype, memory, 3, count, factor);
      byte[] expected = mapped(real, bytes, 3, parts, x -> x * factor);
      assertSame(real, memory, expected, 3, parts);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"INT8", "UINT8", "INT16", "INT32", "INT64"})
  void integersAreDividedTowardZero(DType dtype) {
    int count = 9001;
    byte[] bytes = elements(new Random(13), dtype, 1, count);
    for (int divisor : new int[] {1, 2, 3, 200, 40_000, Integer.MAX_VALUE}) {
      MemorySegment memory = MemorySegment.ofArray(bytes.clone());
      HostReducer.divide(dtype, memory, 1, count, divisor);
      byte[] result = memory.toArray(ValueLayout.JAVA_BYTE);
      for (int i = 0; i < count; i++) {
        int at = 1 + i * dtype.byteSize();
        long before = ScalarReduction.signed(dtype, ScalarReduction.bits(dtype, bytes, at));
        long after = ScalarReduction.signed(dtype, ScalarReduction.bits(dtype, result, at));
        assertThat(after).as("%s / %s", before, divisor).isEqualTo(before / divisor);
      }
    }
  }

  @Test
  void sumsOfIntegersWrap() {
    MemorySegment bytes = MemorySegment.ofArray(new byte[] {127, -128, -1});
    HostReducer.reduce(
        Kind.SUM, DType.INT8, bytes, 0, MemorySegment.ofArray(new byte[] {1, -1, 1}), 0, 3);
    assertThat(bytes.toArray(ValueLayout.JAVA_BYTE)).containsExactly(-128, 127, 0);
    MemorySegment ints = MemorySegment.ofArray(new int[] {Integer.MAX_VALUE});
    HostReducer.reduce(Kind.PRODUCT, DType.INT32, ints, 0, ints, 0, 1);
    assertThat(ints.toArray(ValueLayout.JAVA_INT)).containsExactly(1);
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void nanWinsWhereverItIs(DType dtype) {
    int count = 1000;
    for (Kind kind : new Kind[] {Kind.MIN, Kind.MAX}) {
      for (int who = 0; who < 3; who++) {
        MemorySegment[] inputs = new MemorySegment[3];
        for (int run = 0; run < 3; run++) {
          Tensor values = Tensor.allocate(dtype, count).fill(1.0 + run);
          if (run == who) {
            for (int i = who; i < count; i += 7) {
              values.setDouble(i, Double.NaN);
            }
          }
          inputs[run] = values.segment();
        }
        Tensor all = Tensor.allocate(dtype, count);
        HostReducer.combineAll(kind, dtype, all.segment(), 0, inputs, 0, count);
        HostReducer.reduce(kind, dtype, inputs[0], 0, inputs[1], 0, count);
        HostReducer.reduce(kind, dtype, inputs[2], 0, inputs[0], 0, count);
        Tensor steps = Tensor.wrap(inputs[2], dtype, count);
        for (int i = 0; i < count; i++) {
          Double expected = i >= who && (i - who) % 7 == 0 ? Double.NaN : kind == Kind.MIN ? 1 : 3;
          assertThat(all.getDouble(i)).isEqualTo(expected);
          assertThat(steps.getDouble(i)).isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void minusZeroIsLessThanZeroOnEitherSide() {
    for (Kind kind : new Kind[] {Kind.MIN, Kind.MAX}) {
      MemorySegment a = MemorySegment.ofArray(new float[] {-0f, 0f});
      HostReducer.reduce(
          kind, DType.FLOAT32, a, 0, MemorySegment.ofArray(new float[] {0f, -0f}), 0, 2);
      float zero = kind == Kind.MIN ? -0f : 0f;
      assertThat(a.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(zero, zero);
    }
  }

  @Test
  void halvesOfManyRunsAreRoundedOnce() {
    // 256 + 1 + 1 is 258 when rounded once, but 256 when rounded after each step.
    MemorySegment big = MemorySegment.ofArray(new short[] {0x4380});
    MemorySegment one = MemorySegment.ofArray(new short[] {0x3f80});
    MemorySegment out = MemorySegment.ofArray(new short[1]);
    HostReducer.combineAll(
        Kind.SUM, DType.BFLOAT16, out, 0, new MemorySegment[] {big, one, one}, 0, 1);
    assertThat(out.toArray(ValueLayout.JAVA_SHORT)).containsExactly(0x4381);
    HostReducer.reduce(Kind.SUM, DType.BFLOAT16, big, 0, one, 0, 1);
    HostReducer.reduce(Kind.SUM, DType.BFLOAT16, big, 0, one, 0, 1);
    assertThat(big.toArray(ValueLayout.JAVA_SHORT)).containsExactly(0x4380);
  }

  @Test
  void boolsAreZeroOrOne() {
    MemorySegment a = MemorySegment.ofArray(new byte[] {0, 2, (byte) 0x80, 0, 1, 0, 0, 0, 4});
    MemorySegment b = MemorySegment.ofArray(new byte[] {0, 4, 0, (byte) 0x80, 1, 0, 0, 0, 2});
    HostReducer.reduce(Kind.SUM, DType.BOOL, a, 0, b, 0, 9);
    assertThat(a.toArray(ValueLayout.JAVA_BYTE)).containsExactly(0, 1, 1, 1, 1, 0, 0, 0, 1);
  }

  @Test
  void whatIsNotDefinedIsRefused() {
    MemorySegment memory = MemorySegment.ofArray(new byte[64]);
    for (DType dtype : DType.values()) {
      for (Kind kind : Kind.values()) {
        if (!kind.isDefinedOn(dtype)) {
          assertThatThrownBy(() -> HostReducer.reduce(kind, dtype, memory, 0, memory, 0, 1))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage(kind + " is not defined on " + dtype.label());
        }
      }
    }
    assertThatThrownBy(() -> HostReducer.scale(DType.INT32, memory, 0, 1, 2))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> HostReducer.divide(DType.BOOL, memory, 0, 1, 2))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> HostReducer.divide(DType.INT32, memory, 0, 1, 0))
        .hasMessage("divisor must be positive, and whole for integers, not 0.0");
    assertThatThrownBy(() -> HostReducer.divide(DType.INT32, memory, 0, 1, 1.5))
        .hasMessage("divisor must be positive, and whole for integers, not 1.5");
    assertThatThrownBy(
            () ->
                HostReducer.combineAll(
                    Kind.SUM, DType.INT32, memory, 0, new MemorySegment[0], 0, 1))
        .hasMessageContaining("inputs");
  }

  @Test
  void runsThatLeaveTheirSegmentWriteNothing() {
    byte[] bytes = new byte[12000];
    Arrays.fill(bytes, (byte) 1);
    MemorySegment memory = MemorySegment.ofArray(bytes);
    MemorySegment small = MemorySegment.ofArray(new byte[11999]);
    MemorySegment[] inputs = {memory, small};
    assertOutside(
        "b: 12000 bytes at 0 leave 11999",
        () -> HostReducer.reduce(Kind.SUM, DType.FLOAT32, memory, 0, small, 0, 3000));
    assertOutside(
        "out: 12000 bytes at 0 leave 11999",
        () -> HostReducer.reduce(Kind.SUM, DType.FLOAT32, small, 0, memory, 0, 3000));
    assertOutside(
        "input: 12000 bytes at 0 leave 11999",
        () -> HostReducer.combineAll(Kind.SUM, DType.FLOAT32, memory, 0, inputs, 0, 3000));
    assertOutside(
        "memory: 12000 bytes at 1 leave 12000",
        () -> HostReducer.divide(DType.FLOAT32, memory, 1, 3000, 2));
    assertOutside(
        "memory: 4 bytes at -1 leave 12000",
        () -> HostReducer.scale(DType.FLOAT32, memory, -1, 1, 2));
    assertOutside(
        "out: -4 bytes at 0 leave 12000",
        () -> HostReducer.reduce(Kind.SUM, DType.FLOAT32, memory, 0, memory, 0, -1));
    assertThat(bytes).containsOnly(1);
  }

  private static void assertOutside(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IndexOutOfBoundsException.class).hasMessage(message);
  }

  private static byte[] elements(Random random, DType dtype, int offset, int count) {
    DType real = dtype.toReal();
    byte[] memory = new byte[offset + count * dtype.byteSize() + GUARD];
    random.nextBytes(memory);
    MemorySegment segment = MemorySegment.ofArray(memory);
    int parts = count * dtype.byteSize() / real.byteSize();
    for (int i = 0; i < parts; i++) {
      int at = offset + i * real.byteSize();
      double value =
          random.nextInt(4) == 0
              ? SPECIALS[random.nextInt(SPECIALS.length)]
              : random.nextGaussian() * Math.pow(2, random.nextInt(20) - 10);
      switch (real) {
        case FLOAT64 -> segment.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at, value);
        case FLOAT32 -> segment.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, (float) value);
        case FLOAT16, BFLOAT16 -> {
          // Also the random bits themselves, which include all kinds of NaNs and subnormals.
          if (random.nextBoolean()) {
            long bits = ScalarReduction.narrow(real, value);
            segment.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, (short) bits);
          }
        }
        case BOOL ->
            memory[at] = (byte) (random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(2));
        default -> {
          // Random bits, and equal elements, which minima must keep.
          if (random.nextInt(4) == 0) {
            Arrays.fill(memory, at, at + real.byteSize(), (byte) (random.nextInt(3) - 1));
          }
        }
      }
    }
    return memory;
  }

  private static byte[] plain(
      Kind kind, DType dtype, byte[] a, int aOffset, byte[] b, int bOffset, int count) {
    DType real = dtype.toReal();
    byte[] result = a.clone();
    int unit = real.byteSize();
    for (int i = 0; i < count * dtype.byteSize() / unit; i++) {
      long bits =
          ScalarReduction.combine(
              kind,
              real,
              ScalarReduction.bits(real, a, aOffset + i * unit),
              ScalarReduction.bits(real, b, bOffset + i * unit));
      put(real, result, aOffset + i * unit, bits);
    }
    return result;
  }

  private static byte[] plainAll(Kind kind, DType dtype, byte[][] inputs, int offset, int count) {
    boolean half = dtype == DType.FLOAT16 || dtype == DType.BFLOAT16;
    byte[] result = inputs[0].clone();
    if (!half) {
      for (int i = 1; i < inputs.length; i++) {
        result = plain(kind, dtype, result, offset, inputs[i], offset, count);
      }
      return result;
    }
    for (int i = 0; i < count; i++) {
      int at = offset + i * 2;
      float sum = ScalarReduction.widen(dtype, ScalarReduction.bits(dtype, inputs[0], at));
      for (int k = 1; k < inputs.length; k++) {
        float next = ScalarReduction.widen(dtype, ScalarReduction.bits(dtype, inputs[k], at));
        sum = ScalarReduction.floats(kind, sum, next);
      }
      put(dtype, result, at, ScalarReduction.narrow(dtype, sum));
    }
    return result;
  }

  private interface Function {
    double apply(double value);
  }

  private static byte[] mapped(DType real, byte[] bytes, int offset, int count, Function function) {
    byte[] result = bytes.clone();
    for (int i = 0; i < count; i++) {
      int at = offset + i * real.byteSize();
      long bits = ScalarReduction.bits(real, bytes, at);
      put(
          real,
          result,
          at,
          real == DType.FLOAT64
              ? Double.doubleToRawLongBits(function.apply(Double.longBitsToDouble(bits)))
              : ScalarReduction.narrow(real, function.apply(ScalarReduction.widen(real, bits))));
    }
    return result;
  }

  private static void put(DType dtype, byte[] memory, int at, long bits) {
    MemorySegment segment = MemorySegment.ofArray(memory);
    switch (dtype.byteSize()) {
      case 1 -> memory[at] = (byte) bits;
      case 2 -> segment.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, (short) bits);
      case 4 -> segment.set(ValueLayout.JAVA_INT_UNALIGNED, at, (int) bits);
      default -> segment.set(ValueLayout.JAVA_LONG_UNALIGNED, at, bits);
    }
  }

  /** Compares elements as numbers, and all bytes around them. */
  private static void assertSame(
      DType dtype, MemorySegment actual, byte[] expected, int offset, int count) {
    assertSame(dtype, actual, offset, expected, offset, count);
    byte[] got = actual.toArray(ValueLayout.JAVA_BYTE);
    int end = offset + count * dtype.byteSize();
    assertThat(Arrays.copyOf(got, offset)).isEqualTo(Arrays.copyOf(expected, offset));
    assertThat(Arrays.copyOfRange(got, end, got.length))
        .isEqualTo(Arrays.copyOfRange(expected, end, expected.length));
  }

  private static void assertSame(
      DType dtype, MemorySegment actual, int actualOffset, byte[] expected, int offset, int count) {
    DType real = dtype.toReal();
    byte[] got = actual.toArray(ValueLayout.JAVA_BYTE);
    for (int i = 0; i < count * dtype.byteSize(); i += real.byteSize()) {
      long a = ScalarReduction.bits(real, got, actualOffset + i);
      long b = ScalarReduction.bits(real, expected, offset + i);
      if (!ScalarReduction.same(real, a, b)) {
        throw new AssertionError(
            "byte %d of %s: got %x, expected %x".formatted(i, real.label(), a, b));
      }
    }
  }

  private static MemorySegment place(byte[] bytes, boolean heap, Arena arena) {
    return heap
        ? MemorySegment.ofArray(bytes.clone())
        : arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
  }

  private static MemorySegment everyHalf(int count) {
    short[] halves = new short[count];
    for (int i = 0; i < count; i++) {
      halves[i] = (short) i;
    }
    return MemorySegment.ofArray(halves);
  }

  private static void assertHalf(DType dtype, MemorySegment memory, int index, long expected) {
    long bits = memory.getAtIndex(ValueLayout.JAVA_SHORT, index) & 0xffff;
    if (!ScalarReduction.same(dtype, bits, expected)) {
      throw new AssertionError("%x became %x, expected %x".formatted(index, bits, expected));
    }
  }
}
