package dev.tutti.spi;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Adds by the vector module, which this module's tests have. */
class MemorySumsTest {
  private static final int GUARD = 64;
  private static final int[] LENGTHS = {512, 513, 515, 519, 527, 4096, 5003};

  private static MemorySegment filled(Random random, DType dtype, int offset, long bytes) {
    MemorySegment memory = Arena.ofAuto().allocate(bytes, 8);
    for (long at = offset; at + dtype.byteSize() <= bytes; at += dtype.byteSize()) {
      switch (dtype) {
        case FLOAT32 ->
            memory.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, (float) random.nextGaussian());
        case FLOAT64 -> memory.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, at, random.nextGaussian());
        case INT32 -> memory.set(ValueLayout.JAVA_INT_UNALIGNED, at, random.nextInt());
        default -> memory.set(ValueLayout.JAVA_LONG_UNALIGNED, at, random.nextLong());
      }
    }
    return memory;
  }

  private static MemorySegment[] copies(Arena arena, MemorySegment[] inputs) {
    MemorySegment[] copies = new MemorySegment[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      copies[i] = arena.allocate(inputs[i].byteSize(), 8).copyFrom(inputs[i]);
    }
    return copies;
  }

  @Test
  void theModuleIsHere() {
    assertThat(HostReducer.hasVectors()).isTrue();
  }

  @Test
  void memoryOfAFileDoesNotLast(@TempDir Path directory) throws IOException {
    try (FileChannel file =
        FileChannel.open(
            directory.resolve("file"),
            StandardOpenOption.CREATE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 4096, Arena.ofAuto());
      assertThat(MemorySums.lasts(mapped)).isFalse();
    }
  }

  @Test
  void onlyMemoryThatNobodyCanCloseLasts() {
    assertThat(MemorySums.lasts(Arena.global().allocate(8))).isTrue();
    assertThat(MemorySums.lasts(Arena.ofAuto().allocate(8).asSlice(4))).isTrue();
    assertThat(MemorySums.lasts(MemorySegment.ofArray(new int[2]))).isFalse();
    try (Arena shared = Arena.ofShared();
        Arena confined = Arena.ofConfined()) {
      assertThat(MemorySums.lasts(shared.allocate(8))).isFalse();
      assertThat(MemorySums.lasts(confined.allocate(8))).isFalse();
    }
  }

  /** Compares with memory that may be closed, which goes through arrays. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT64", "INT32", "INT64"})
  void sumsAreThoseOfArrays(DType dtype) {
    Random random = new Random(dtype.label().hashCode());
    int unit = dtype.byteSize();
    for (int count : LENGTHS) {
      for (int size = 2; size <= 5; size++) {
        for (int out = -1; out < size; out++) {
          int offset = GUARD + random.nextInt(8);
          long bytes = (long) count * unit;
          MemorySegment[] inputs = new MemorySegment[size + 2];
          for (int i = 0; i < inputs.length; i++) {
            inputs[i] = filled(random, dtype, offset, bytes + 2 * GUARD + 8);
          }
          try (Arena arena = Arena.ofShared()) {
            MemorySegment[] expected = copies(arena, inputs);
            run(dtype, expected, size, out, offset, count);
            run(dtype, inputs, size, out, offset, count);
            for (int i = 0; i < inputs.length; i++) {
              assertThat(inputs[i].mismatch(expected[i]))
                  .as("%s, %d of %d, memory %d, out %d", dtype, count, size, i, out)
                  .isEqualTo(-1);
            }
          }
        }
      }
    }
  }

  /** Adds into the memory behind the inputs, or one of them, and copies to the last. */
  private static void run(
      DType dtype, MemorySegment[] all, int size, int out, int offset, int count) {
    MemorySegment[] inputs = new MemorySegment[size];
    long[] offsets = new long[size];
    for (int i = 0; i < size; i++) {
      inputs[i] = all[i];
      offsets[i] = offset;
    }
    MemorySegment target = all[out < 0 ? size : out];
    if (count % 2 == 0) {
      HostReducer.combineAll(Kind.AVG, dtype, target, offset, inputs, offsets, count);
    } else {
      HostReducer.combineAllTwice(
          Kind.SUM, dtype, target, offset, all[size + 1], offset + 3L, inputs, offsets, count);
    }
  }
}
