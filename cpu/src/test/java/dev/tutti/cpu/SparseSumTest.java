package dev.tutti.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.sparse.SparseInputs;
import dev.tutti.cpu.sparse.SparseInputs.Places;
import dev.tutti.cpu.sparse.TreeMapSum;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class SparseSumTest {
  private static final int[] MOST_PLACES_BITS = {1, 4, 9, 14};

  static Stream<DType> reducible() {
    return Arrays.stream(DType.values()).filter(dtype -> !dtype.isOpaque());
  }

  private static byte[] bytes(Tensor tensor) {
    return tensor.segment().asSlice(0, tensor.byteSize()).toArray(ValueLayout.JAVA_BYTE);
  }

  private static void check(List<Tensor> tensors) {
    List<byte[]> values = tensors.stream().map(each -> bytes(each.values())).toList();
    List<long[]> indices = tensors.stream().map(each -> each.indices().toLongArray()).toList();
    Tensor expected = TreeMapSum.of(tensors);
    Tensor sum = SparseSum.of(tensors);
    assertThat(sum.shape()).isEqualTo(expected.shape());
    assertThat(sum.indices().toLongArray()).isEqualTo(expected.indices().toLongArray());
    assertThat(bytes(sum.values())).isEqualTo(bytes(expected.values()));
    for (int i = 0; i < tensors.size(); i++) {
      assertThat(bytes(tensors.get(i).values())).isEqualTo(values.get(i));
      assertThat(tensors.get(i).indices().toLongArray()).isEqualTo(indices.get(i));
      assertThat(sum.values().segment().asOverlappingSlice(tensors.get(i).values().segment()))
          .isEmpty();
    }
  }

  private static long[] sizes(Random random, int dims, long most) {
    return random.longs(dims, 1, most + 1).toArray();
  }

  @ParameterizedTest
  @MethodSource("reducible")
  void sumsHaveTheBitsOfSumsPlaceByPlace(DType dtype) {
    Random random = new Random(dtype.label().hashCode());
    for (int i = 0; i < 40; i++) {
      long most = 1L << MOST_PLACES_BITS[random.nextInt(MOST_PLACES_BITS.length)];
      long[] sparse = sizes(random, random.nextInt(5), most);
      long[] dense = sizes(random, random.nextInt(4), 4);
      SparseInputs inputs = new SparseInputs(random, dtype, sparse, dense);
      for (Places places : Places.values()) {
        check(inputs.tensors(1 + random.nextInt(9), 1 << random.nextInt(9), places));
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Places.class)
  void manyEntriesAreSummedHoweverFarApart(Places places) {
    Random random = new Random(places.name().hashCode());
    for (long[] sparse :
        new long[][] {{1 << 10}, {3, 1 << 15}, {1 << 22}, {1L << 31, 5, 2}, {Long.MAX_VALUE / 9}}) {
      for (int tensors : new int[] {1, 2, 5}) {
        for (int length : new int[] {1, 9}) {
          SparseInputs inputs =
              new SparseInputs(random, DType.FLOAT32, sparse, new long[] {length});
          check(inputs.tensors(tensors, 6000, places));
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("reducible")
  void longRowsAreAddedInBlocks(DType dtype) {
    Random random = new Random(4);
    for (int length : new int[] {1023, 1024, 8192, 9001}) {
      SparseInputs inputs = new SparseInputs(random, dtype, new long[] {6}, new long[] {length});
      check(inputs.tensors(3, 5, Places.RANDOM));
    }
  }

  @ParameterizedTest
  @MethodSource("reducible")
  void elementsAloneKeepTheirBits(DType dtype) {
    for (int length : new int[] {1, 40}) {
      Random random = new Random(length);
      SparseInputs inputs = new SparseInputs(random, dtype, new long[] {10}, new long[] {length});
      Tensor first = inputs.tensor(7, 2, 3);
      Tensor second = inputs.tensor(5, 2);
      byte[] alone = new byte[length * dtype.byteSize()];
      Arrays.fill(alone, (byte) 2);
      signalling(dtype, alone);
      MemorySegment.copy(
          alone, 0, second.values().segment(), ValueLayout.JAVA_BYTE, 0, alone.length);
      check(List.of(first, second));
      Tensor sum = SparseSum.of(List.of(first, second));
      assertThat(sum.indices().toLongArray()).containsExactly(2, 3, 5, 7);
      assertThat(Arrays.copyOfRange(bytes(sum.values()), 2 * alone.length, 3 * alone.length))
          .isEqualTo(alone);
    }
  }

  /** Turns each element into a NaN that arithmetic would make quiet. */
  private static void signalling(DType dtype, byte[] elements) {
    MemorySegment memory = MemorySegment.ofArray(elements);
    for (int at = 0; at < elements.length; at += dtype.toReal().byteSize()) {
      switch (dtype.toReal()) {
        case FLOAT64 -> memory.set(ValueLayout.JAVA_LONG_UNALIGNED, at, 0x7ff0_0000_0000_0001L);
        case FLOAT32 -> memory.set(ValueLayout.JAVA_INT_UNALIGNED, at, 0x7f80_0001);
        case FLOAT16 -> memory.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, (short) 0x7c01);
        case BFLOAT16 -> memory.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, (short) 0x7f81);
        default -> {}
      }
    }
  }

  @Test
  void halvesAreRoundedOnce() {
    for (int length : new int[] {1, 64}) {
      Tensor indices = Tensor.allocate(DType.INT64, 1, 4);
      Tensor values = Tensor.allocate(DType.FLOAT16, 4, length).fill(1);
      values.narrow(0, 0, 1).fill(2048);
      Tensor sum = SparseSum.of(List.of(Tensor.sparse(indices, values, 3, length)));
      assertThat(sum.values().toDoubleArray()).containsOnly(2052).hasSize(length);
    }
  }

  @Test
  void tensorsWithoutEntriesHaveAnEmptySum() {
    SparseInputs inputs =
        new SparseInputs(new Random(1), DType.INT32, new long[] {3, 4}, new long[] {2});
    check(List.of(inputs.tensor()));
    check(List.of(inputs.tensor(), inputs.tensor(7), inputs.tensor()));
    assertThat(SparseSum.of(List.of(inputs.tensor(), inputs.tensor())).indices().shape())
        .containsExactly(2, 0);
  }

  @Test
  void rowsMayBeEmpty() {
    SparseInputs inputs =
        new SparseInputs(new Random(1), DType.FLOAT32, new long[] {5}, new long[] {0, 3});
    check(List.of(inputs.tensor(4, 1, 4), inputs.tensor(2)));
  }

  @Test
  void aTensorInOrderIsCoalescedAsItIs() {
    SparseInputs inputs =
        new SparseInputs(new Random(1), DType.FLOAT32, new long[] {3, 4}, new long[] {2});
    Tensor ascending = inputs.tensor(0, 3, 11);
    assertThat(SparseSum.coalesce(ascending)).isSameAs(ascending);
    for (long[] keys : new long[][] {{0, 3, 3}, {4, 3, 8}}) {
      Tensor other = inputs.tensor(keys);
      Tensor sum = SparseSum.coalesce(other);
      Tensor expected = TreeMapSum.of(List.of(other));
      assertThat(sum.indices().toLongArray()).isEqualTo(expected.indices().toLongArray());
      assertThat(bytes(sum.values())).isEqualTo(bytes(expected.values()));
    }
  }

  @Test
  void theFirstIndexOutsideIsNamed() {
    Tensor good = sparse(new long[] {0, 2, 1, 3}, 3, 4);
    for (long bad : new long[] {-1, 4, Long.MIN_VALUE, Long.MAX_VALUE}) {
      Tensor tensor = sparse(new long[] {1, 2, 7, 0, bad, 1}, 3, 4);
      assertThatThrownBy(() -> SparseSum.of(List.of(good, tensor)))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessage("index " + bad + " is outside dimension 1 of float32[3, 4] sparse on cpu");
    }
    assertThatThrownBy(() -> SparseSum.coalesce(sparse(new long[] {0, 0}, 3, 0)))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void tensorsThatDoNotMatchAreRefused() {
    Tensor tensor = sparse(new long[] {1}, 3);
    assertThatThrownBy(() -> SparseSum.of(List.of(tensor, sparse(new long[] {1, 1}, 3, 4))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("sparse dimensions do not match: 1 and 2");
    assertThatThrownBy(() -> SparseSum.of(List.of(tensor, sparse(new long[] {1}, 4))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("float32[3]")
        .hasMessageContaining("float32[4]");
  }

  @Test
  void morePlacesThanALongCountsAreRefused() {
    long[] shape = {1L << 40, 1L << 40, 0};
    Tensor none = Tensor.allocate(DType.INT64, 2, 0);
    Tensor empty = Tensor.sparse(none, Tensor.allocate(DType.FLOAT32, 0, 0), shape);
    assertThat(SparseSum.of(List.of(empty)).indices().size(1)).isZero();
    Tensor one = Tensor.allocate(DType.INT64, 2, 1);
    Tensor tensor = Tensor.sparse(one, Tensor.allocate(DType.FLOAT32, 1, 0), shape);
    assertThatThrownBy(() -> SparseSum.of(List.of(tensor)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("more than 2^63 - 1 positions");
  }

  @Test
  void moreEntriesThanAnArrayHoldsAreRefused() {
    long half = 1L << 30;
    Tensor indices = Tensor.allocate(DType.INT64, 0, half);
    Tensor tensor = Tensor.sparse(indices, Tensor.allocate(DType.FLOAT32, half, 0), 0);
    assertThatThrownBy(() -> SparseSum.of(List.of(tensor, tensor)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("not of 2147483648");
  }

  private static Tensor sparse(long[] indices, long... shape) {
    int count = indices.length / shape.length;
    return Tensor.sparse(
        Tensor.of(indices).view(shape.length, count), Tensor.allocate(DType.FLOAT32, count), shape);
  }
}
