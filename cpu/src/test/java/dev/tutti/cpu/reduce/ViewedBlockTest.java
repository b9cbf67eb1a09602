package dev.tutti.cpu.reduce;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.ReduceOp.Kind;
import dev.tutti.cpu.HostReducer;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Adds native memory in place. */
class ViewedBlockTest {
  private static final int SUMS = 1000;

  private static final int GUARD = 64;
  private static final int[] LENGTHS = {1, 15, 16, 17, 513, 519, 4096, 5003};

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

  private static MemorySegment[] copies(MemorySegment[] inputs) {
    MemorySegment[] copies = new MemorySegment[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      copies[i] =
          MemorySegment.ofArray(new long[(int) inputs[i].byteSize() / 8 + 1])
              .asSlice(0, inputs[i].byteSize())
              .copyFrom(inputs[i]);
    }
    return copies;
  }

  private static float sum(MemorySegment a, long aOffset, MemorySegment b, int count) {
    MemorySegment sums = MemorySegment.ofArray(new float[count]);
    HostReducer.combine(Kind.SUM, DType.FLOAT32, sums, 0, a, aOffset, b, 0, count);
    return sums.getAtIndex(ValueLayout.JAVA_FLOAT, count - 1);
  }

  private static MemorySegment ofLast(Arena arena, int count, float last) {
    MemorySegment memory = arena.allocate(ValueLayout.JAVA_FLOAT, count);
    memory.setAtIndex(ValueLayout.JAVA_FLOAT, count - 1, last);
    return memory;
  }

  @Test
  void memoryOfEachKindIsAdded(@TempDir Path directory) throws IOException {
    int count = 1000;
    try (Arena confined = Arena.ofConfined();
        Arena shared = Arena.ofShared();
        FileChannel file = FileChannel.open(directory.resolve("file"), CREATE, READ, WRITE)) {
      MemorySegment mapped = file.map(MapMode.READ_WRITE, 0, 4L * count, shared);
      mapped.setAtIndex(ValueLayout.JAVA_FLOAT, count - 1, 16);
      List<MemorySegment> all =
          List.of(
              ofLast(confined, count, 1),
              ofLast(shared, count, 2),
              ofLast(Arena.ofAuto(), count, 4).asReadOnly(),
              ofLast(Arena.global(), count, 8),
              mapped);
      for (int i = 0; i < all.size(); i++) {
        for (int j = 0; j < all.size(); j++) {
          assertThat(sum(all.get(i), 0, all.get(j), count)).isEqualTo((1 << i) + (1 << j));
        }
      }
    }
  }

  @Test
  void memoryThatWasClosedIsRefused() {
    MemorySegment other = Arena.ofAuto().allocate(4000, 4);
    MemorySegment memory;
    try (Arena arena = Arena.ofShared()) {
      memory = ofLast(arena, 1000, 1);
      assertThat(sum(memory, 0, other, 1000)).isEqualTo(1);
    }
    assertThatThrownBy(() -> sum(memory, 0, other, 1000))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("Already closed");
  }

  /** A buffer holds at most 2 GiB. */
  @Test
  void memoryOfThreeGibibytesIsAddedToo(@TempDir Path directory) throws IOException {
    long size = 3L << 30;
    try (Arena arena = Arena.ofConfined();
        FileChannel file =
            FileChannel.open(directory.resolve("file"), CREATE, READ, WRITE, SPARSE)) {
      MemorySegment mapped = file.map(MapMode.READ_WRITE, 0, size, arena);
      mapped.set(ValueLayout.JAVA_FLOAT, size - 4, 5);
      assertThat(sum(mapped, size - 4000, ofLast(arena, 1000, 2), 1000)).isEqualTo(7);
    }
  }

  @Test
  void aSumOfMemoryThatWasAddedBeforeAllocatesNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    MemorySegment a = Arena.ofAuto().allocate(1 << 16, 64);
    MemorySegment b = Arena.ofAuto().allocate(1 << 16, 64);
    add(a, b);
    long before = threads.getCurrentThreadAllocatedBytes();
    add(a, b);
    assertThat((threads.getCurrentThreadAllocatedBytes() - before) / SUMS).isZero();
  }

  private static void add(MemorySegment a, MemorySegment b) {
    for (int i = 0; i < SUMS; i++) {
      HostReducer.reduce(Kind.SUM, DType.FLOAT32, a, 0, b, 0, 1 << 14);
    }
  }

  @Test
  void memoryThatWasAddedIsNotKept() {
    WeakReference<MemorySegment> added = added();
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(240);
    while (added.get() != null) {
      assertThat(System.nanoTime() - deadline).isNegative();
      System.gc();
    }
  }

  /** Adds memory that nobody has afterwards. */
  private static WeakReference<MemorySegment> added() {
    MemorySegment memory = Arena.ofAuto().allocate(4000, 4);
    assertThat(sum(memory, 0, memory, 1000)).isZero();
    return new WeakReference<>(memory);
  }

  /** Segments come and go at the same addresses. */
  @Test
  void otherMemoryAtTheSameAddressIsNotTakenForIt() {
    MemorySegment memory = Arena.ofAuto().allocate(8000, 4);
    MemorySegment ones = memory.asSlice(0, 4000);
    MemorySegment longer = memory.asSlice(0, 8000);
    longer.setAtIndex(ValueLayout.JAVA_FLOAT, 999, 1);
    longer.setAtIndex(ValueLayout.JAVA_FLOAT, 1999, 2);
    for (int i = 0; i < 100; i++) {
      assertThat(sum(ones, 0, memory.asSlice(0), 1000)).isEqualTo(2);
      assertThat(sum(longer, 0, memory.asSlice(0), 2000)).isEqualTo(4);
    }
  }

  /** Compares the sums with those in heap memory, which go through arrays. */
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
          MemorySegment[] expected = copies(inputs);
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

  /** Adds into memory after the inputs, or into one of them, and copies to the last. */
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
