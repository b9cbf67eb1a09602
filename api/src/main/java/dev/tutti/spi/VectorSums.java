package dev.tutti.spi;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.tutti.DType;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.VectorSpecies;

/** Adds by the vector module: each element is read once and written once or twice. */
final class VectorSums implements MemorySums {
  /** Is all memory, as a constant, so that the compiler knows its kind. */
  private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private static final ByteOrder ORDER = ByteOrder.nativeOrder();
  private static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;
  private static final VectorSpecies<Double> DOUBLES = DoubleVector.SPECIES_PREFERRED;
  private static final VectorSpecies<Integer> INTS = IntVector.SPECIES_PREFERRED;
  private static final VectorSpecies<Long> LONGS = LongVector.SPECIES_PREFERRED;

  @Override
  public void sum(DType dtype, long[] inputs, long out, long copy, long bytes) {
    switch (dtype) {
      case FLOAT32 -> floats(inputs, out, copy, bytes);
      case FLOAT64 -> doubles(inputs, out, copy, bytes);
      case INT32 -> ints(inputs, out, copy, bytes);
      case INT64 -> longs(inputs, out, copy, bytes);
      default -> throw new IllegalArgumentException(dtype.label() + " is not added here");
    }
  }

  private static void floats(long[] inputs, long out, long copy, long bytes) {
    long first = inputs[0];
    long next = inputs[1];
    long step = FLOATS.vectorByteSize();
    long at = 0;
    for (; at <= bytes - step; at += step) {
      FloatVector sum =
          FloatVector.fromMemorySegment(FLOATS, ALL, first + at, ORDER)
              .add(FloatVector.fromMemorySegment(FLOATS, ALL, next + at, ORDER));
      for (int i = 2; i < inputs.length; i++) {
        sum = sum.add(FloatVector.fromMemorySegment(FLOATS, ALL, inputs[i] + at, ORDER));
      }
      sum.intoMemorySegment(ALL, out + at, ORDER);
      if (copy != 0) {
        sum.intoMemorySegment(ALL, copy + at, ORDER);
      }
    }
    for (; at < bytes; at += Float.BYTES) {
      float sum =
          ALL.get(JAVA_FLOAT_UNALIGNED, first + at) + ALL.get(JAVA_FLOAT_UNALIGNED, next + at);
      for (int i = 2; i < inputs.length; i++) {
        sum += ALL.get(JAVA_FLOAT_UNALIGNED, inputs[i] + at);
      }
      ALL.set(JAVA_FLOAT_UNALIGNED, out + at, sum);
      if (copy != 0) {
        ALL.set(JAVA_FLOAT_UNALIGNED, copy + at, sum);
      }
    }
  }

  private static void doubles(long[] inputs, long out, long copy, long bytes) {
    long first = inputs[0];
    long next = inputs[1];
    long step = DOUBLES.vectorByteSize();
    long at = 0;
    for (; at <= bytes - step; at += step) {
      DoubleVector sum =
          DoubleVector.fromMemorySegment(DOUBLES, ALL, first + at, ORDER)
              .add(DoubleVector.fromMemorySegment(DOUBLES, ALL, next + at, ORDER));
      for (int i = 2; i < inputs.length; i++) {
        sum = sum.add(DoubleVector.fromMemorySegment(DOUBLES, ALL, inputs[i] + at, ORDER));
      }
      sum.intoMemorySegment(ALL, out + at, ORDER);
      if (copy != 0) {
        sum.intoMemorySegment(ALL, copy + at, ORDER);
      }
    }
    for (; at < bytes; at += Double.BYTES) {
      double sum =
          ALL.get(JAVA_DOUBLE_UNALIGNED, first + at) + ALL.get(JAVA_DOUBLE_UNALIGNED, next + at);
      for (int i = 2; i < inputs.length; i++) {
        sum += ALL.get(JAVA_DOUBLE_UNALIGNED, inputs[i] + at);
      }
      ALL.set(JAVA_DOUBLE_UNALIGNED, out + at, sum);
      if (copy != 0) {
        ALL.set(JAVA_DOUBLE_UNALIGNED, copy + at, sum);
      }
    }
  }

  private static void ints(long[] inputs, long out, long copy, long bytes) {
    long first = inputs[0];
    long next = inputs[1];
    long step = INTS.vectorByteSize();
    long at = 0;
    for (; at <= bytes - step; at += step) {
      IntVector sum =
          IntVector.fromMemorySegment(INTS, ALL, first + at, ORDER)
              .add(IntVector.fromMemorySegment(INTS, ALL, next + at, ORDER));
      for (int i = 2; i < inputs.length; i++) {
        sum = sum.add(IntVector.fromMemorySegment(INTS, ALL, inputs[i] + at, ORDER));
      }
      sum.intoMemorySegment(ALL, out + at, ORDER);
      if (copy != 0) {
        sum.intoMemorySegment(ALL, copy + at, ORDER);
      }
    }
    for (; at < bytes; at += Integer.BYTES) {
      int sum = ALL.get(JAVA_INT_UNALIGNED, first + at) + ALL.get(JAVA_INT_UNALIGNED, next + at);
      for (int i = 2; i < inputs.length; i++) {
        sum += ALL.get(JAVA_INT_UNALIGNED, inputs[i] + at);
      }
      ALL.set(JAVA_INT_UNALIGNED, out + at, sum);
      if (copy != 0) {
        ALL.set(JAVA_INT_UNALIGNED, copy + at, sum);
      }
    }
  }

  private static void longs(long[] inputs, long out, long copy, long bytes) {
    long first = inputs[0];
    long next = inputs[1];
    long step = LONGS.vectorByteSize();
    long at = 0;
    for (; at <= bytes - step; at += step) {
      LongVector sum =
          LongVector.fromMemorySegment(LONGS, ALL, first + at, ORDER)
              .add(LongVector.fromMemorySegment(LONGS, ALL, next + at, ORDER));
      for (int i = 2; i < inputs.length; i++) {
        sum = sum.add(LongVector.fromMemorySegment(LONGS, ALL, inputs[i] + at, ORDER));
      }
      sum.intoMemorySegment(ALL, out + at, ORDER);
      if (copy != 0) {
        sum.intoMemorySegment(ALL, copy + at, ORDER);
      }
    }
    for (; at < bytes; at += Long.BYTES) {
      long sum = ALL.get(JAVA_LONG_UNALIGNED, first + at) + ALL.get(JAVA_LONG_UNALIGNED, next + at);
      for (int i = 2; i < inputs.length; i++) {
        sum += ALL.get(JAVA_LONG_UNALIGNED, inputs[i] + at);
      }
      ALL.set(JAVA_LONG_UNALIGNED, out + at, sum);
      if (copy != 0) {
        ALL.set(JAVA_LONG_UNALIGNED, copy + at, sum);
      }
    }
  }
}
