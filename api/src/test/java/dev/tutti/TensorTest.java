package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class TensorTest {
  private static final ByteOrder OTHER_ORDER =
      ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
          ? ByteOrder.LITTLE_ENDIAN
          : ByteOrder.BIG_ENDIAN;

  /** Returns a tensor that holds 0, 1, 2, ... in row-major order. */
  private static Tensor counting(long... shape) {
    Tensor tensor = Tensor.allocate(DType.INT64, shape);
    for (long i = 0; i < tensor.numel(); i++) {
      tensor.setLong(i, i);
    }
    return tensor;
  }

  @ParameterizedTest
  @EnumSource
  void allocatedMemoryIsZeroedAlignedAndLongEnough(DType dtype) {
    Tensor tensor = Tensor.allocate(dtype, 3, 5);
    assertThat(tensor.dtype()).isEqualTo(dtype);
    assertThat(tensor.shape()).containsExactly(3, 5);
    assertThat(tensor.strides()).containsExactly(5, 1);
    assertThat(tensor.numel()).isEqualTo(15);
    assertThat(tensor.byteSize()).isEqualTo(15L * dtype.byteSize());
    assertThat(tensor.segment().byteSize()).isEqualTo(tensor.byteSize());
    assertThat(tensor.segment().address() % Tensor.ALIGNMENT).isZero();
    assertThat(tensor.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
    assertThat(tensor.isContiguous()).isTrue();
    assertThat(tensor.device()).isEqualTo(Device.CPU);
  }

  @Test
  void memoryOfAnArenaEndsWithIt() {
    Tensor tensor;
    try (Arena arena = Arena.ofConfined()) {
      tensor = Tensor.allocate(arena, DType.FLOAT32, 4);
      tensor.fill(1);
    }
    assertThatIllegalStateException().isThrownBy(() -> tensor.getDouble(0));
  }

  @Test
  void aScalarHasOneElementAndAnEmptyTensorNone() {
    Tensor scalar = Tensor.allocate(DType.FLOAT32);
    assertThat(scalar.dim()).isZero();
    assertThat(scalar.numel()).isEqualTo(1);
    scalar.setDouble(0, 2.5);
    assertThat(scalar.toFloatArray()).containsExactly(2.5f);

    Tensor empty = Tensor.allocate(DType.FLOAT32, 3, 0, Long.MAX_VALUE);
    assertThat(empty.numel()).isZero();
    assertThat(empty.byteSize()).isZero();
    assertThat(empty.isContiguous()).isTrue();
    assertThat(empty.copy().shape()).containsExactly(3, 0, Long.MAX_VALUE);
    assertThat(empty.toFloatArray()).isEmpty();
  }

  @Test
  void shapesThatCannotBeAreRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.allocate(DType.INT8, 2, -1))
        .withMessage("negative size in shape [2, -1]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.allocate(DType.INT8, 0, -1))
        .withMessage("negative size in shape [0, -1]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.allocate(DType.INT8, 1L << 32, 1L << 32))
        .withMessage("too many elements: [4294967296, 4294967296]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.allocate(DType.INT64, 1L << 61))
        .withMessage("too many elements: [2305843009213693952]");
  }

  @Test
  void segmentsMustBeLongEnough() {
    MemorySegment memory = MemorySegment.ofArray(new byte[23]);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.FLOAT32, 2, 3))
        .withMessage("segment has 23 bytes, but float32[2, 3] on cpu needs 6 elements of 4 bytes");
    assertThat(Tensor.wrap(memory, DType.FLOAT32, 5).numel()).isEqualTo(5);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.INT64, 1L << 61))
        .withMessageContaining("needs 2305843009213693952 elements of 8 bytes");
  }

  @Test
  void stridedViewsMustStayInTheSegment() {
    MemorySegment memory = MemorySegment.ofArray(new byte[10]);
    long[] shape = {2, 3};
    Tensor exact = Tensor.wrap(memory, DType.INT8, shape, new long[] {7, 1}, Device.CPU);
    assertThat(exact.isContiguous()).isFalse();
    exact.setLong(5, 9L);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 9)).isEqualTo((byte) 9);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.INT8, shape, new long[] {8, 1}, Device.CPU))
        .withMessage(
            "segment has 10 bytes, but int8[2, 3] strides [8, 1] on cpu needs 11 elements of 1"
                + " bytes");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.INT8, shape, new long[] {-1, 1}, Device.CPU))
        .withMessage("stride must not be negative: -1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.INT8, shape, new long[] {1}, Device.CPU))
        .withMessage("shape has 2 dimensions, but strides has 1");
    long[] huge = {Long.MAX_VALUE, Long.MAX_VALUE};
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(memory, DType.INT8, shape, huge, Device.CPU))
        .withMessageContaining("exceed the range of a 64-bit offset");
  }

  @Test
  void arraysGivenAreCopied() {
    long[] shape = {2, 2};
    long[] strides = {2, 1};
    MemorySegment memory = MemorySegment.ofArray(new int[] {1, 2, 3, 4});
    Tensor tensor = Tensor.wrap(memory, DType.INT32, shape, strides, Device.CPU);
    shape[0] = 100;
    strides[0] = 100;
    tensor.shape()[0] = 7;
    tensor.strides()[0] = 7;
    assertThat(tensor.shape()).containsExactly(2, 2);
    assertThat(tensor.strides()).containsExactly(2, 1);
    int[] elements = {5, 6};
    Tensor copied = Tensor.of(elements);
    elements[0] = 0;
    assertThat(copied.toLongArray()).containsExactly(5, 6);
  }

  @Test
  void arraysBecomeTensorsOfTheirType() {
    assertThat(Tensor.of(1f, 2f).toString()).isEqualTo("float32[2] on cpu [1.0, 2.0]");
    assertThat(Tensor.of(1.0, 2.0).toString()).isEqualTo("float64[2] on cpu [1.0, 2.0]");
    assertThat(Tensor.of(1, 2).toString()).isEqualTo("int32[2] on cpu [1, 2]");
    assertThat(Tensor.of(1L, 2L).toString()).isEqualTo("int64[2] on cpu [1, 2]");
    Tensor bytes = Tensor.ofUint8((byte) -1, (byte) 2);
    assertThat(bytes.toString()).isEqualTo("uint8[2] on cpu [255, 2]");
    assertThat(bytes.toLongArray()).containsExactly(255, 2);
  }

  @Test
  void buffersAreViewedFromPositionToLimit() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(20).order(ByteOrder.nativeOrder());
    buffer.putInt(4, 7).putInt(8, 8).position(4).limit(12);
    Tensor tensor = Tensor.wrap(buffer, DType.INT32, 2);
    assertThat(tensor.toLongArray()).containsExactly(7, 8);
    tensor.setLong(1, 9L);
    assertThat(buffer.getInt(8)).isEqualTo(9);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(buffer, DType.INT32, 3))
        .withMessageContaining("segment has 8 bytes");
  }

  @Test
  void buffersOfAnotherByteOrderAreRefused() {
    ByteBuffer buffer = ByteBuffer.allocate(8).order(OTHER_ORDER);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.wrap(buffer, DType.INT16, 4))
        .withMessageContaining("buffer is " + OTHER_ORDER)
        .withMessageContaining("order(ByteOrder.nativeOrder())");
    assertThat(Tensor.wrap(buffer, DType.INT8, 8).numel()).isEqualTo(8);
  }

  @Test
  void viewsShareMemory() {
    Tensor tensor = counting(2, 3, 4);
    Tensor view = tensor.view(4, 6);
    assertThat(view.strides()).containsExactly(6, 1);
    view.setLong(23, -1L);
    assertThat(tensor.getLong(23)).isEqualTo(-1);
    assertThat(tensor.flatten().shape()).containsExactly(24);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> tensor.view(5, 5))
        .withMessage("cannot view int64[2, 3, 4] on cpu as [5, 5]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> tensor.transpose(0, 1).view(24))
        .withMessageContaining("view needs a contiguous tensor");
  }

  /** The segment must end with the tensor's last element, so that a copy of it takes no more. */
  @Test
  void theSegmentEndsWithTheLastElement() {
    Tensor five = Tensor.of(1f, 2f, 3f, 4f, 5f);
    Tensor narrowed = five.narrow(0, 1, 2);
    assertThat(narrowed.segment().byteSize()).isEqualTo(narrowed.byteSize()).isEqualTo(8);
    assertThat(narrowed.segment().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(2f, 3f);
    assertThat(narrowed.narrow(0, 0, 0).segment().byteSize()).isZero();
    assertThat(five.segment().byteSize()).isEqualTo(20);
    MemorySegment longer = MemorySegment.ofArray(new int[10]);
    assertThat(Tensor.wrap(longer, DType.INT32, 2, 3).segment().byteSize()).isEqualTo(24);
    Tensor rows = Tensor.of(1, 2, 3, 4, 5, 6).view(2, 3);
    Tensor columns = rows.narrow(1, 0, 2);
    assertThat(columns.isContiguous()).isFalse();
    assertThat(columns.segment().byteSize()).isEqualTo(20);
    assertThat(columns.toIntArray()).containsExactly(1, 2, 4, 5);
    Tensor expanded =
        Tensor.wrap(longer, DType.INT32, new long[] {3, 2}, new long[] {0, 1}, Device.CPU);
    assertThat(expanded.segment().byteSize()).isEqualTo(8);
    Tensor none =
        Tensor.wrap(longer, DType.INT32, new long[] {3, 0}, new long[] {9, 9}, Device.CPU);
    assertThat(none.segment().byteSize()).isZero();
  }

  @Test
  void narrowSelectAndTransposeFindTheirElements() {
    Tensor tensor = counting(2, 3, 4);
    Tensor narrowed = tensor.narrow(1, 1, 2);
    assertThat(narrowed.shape()).containsExactly(2, 2, 4);
    assertThat(narrowed.toLongArray())
        .containsExactly(4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23);
    assertThat(tensor.select(1, 2).toLongArray()).containsExactly(8, 9, 10, 11, 20, 21, 22, 23);
    assertThat(tensor.select(2, 3).select(0, 1).toLongArray()).containsExactly(15, 19, 23);
    assertThat(tensor.select(0, 1).transpose(0, 1).toLongArray())
        .containsExactly(12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23);
    assertThat(tensor.narrow(0, 1, 1).isContiguous()).isTrue();
    assertThat(tensor.narrow(2, 4, 0).numel()).isZero();
    assertThat(tensor.transpose(1, 1).isContiguous()).isTrue();
  }

  @Test
  void dimensionsAndRangesOutsideAreRefused() {
    Tensor tensor = counting(2, 3);
    for (int dimension : new int[] {-1, 2}) {
      String message = "no dimension " + dimension + " in int64[2, 3] on cpu";
      assertOutside(message, () -> tensor.size(dimension));
      assertOutside(message, () -> tensor.narrow(dimension, 0, 1));
      assertOutside(message, () -> tensor.select(dimension, 0));
      assertOutside(message, () -> tensor.transpose(dimension, 0));
      assertOutside(message, () -> tensor.transpose(0, dimension));
    }
    assertOutside(
        "range 2+2 exceeds dimension 1 of int64[2, 3] on cpu", () -> tensor.narrow(1, 2, 2));
    assertOutside(
        "range 1+" + Long.MAX_VALUE + " exceeds dimension 1 of int64[2, 3] on cpu",
        () -> tensor.narrow(1, 1, Long.MAX_VALUE));
    assertOutside(
        "range -1+1 exceeds dimension 0 of int64[2, 3] on cpu", () -> tensor.select(0, -1));
    assertOutside("index 6 is outside int64[2, 3] on cpu", () -> tensor.getLong(6));
    assertOutside("index -1 is outside int64[2, 3] on cpu", () -> tensor.setLong(-1, 0L));
  }

  @Test
  void complexTensorsAreViewedAsPairs() {
    Tensor complex = Tensor.allocate(DType.COMPLEX64, 2, 3);
    Tensor real = complex.viewAsReal();
    assertThat(real.describe()).isEqualTo("float32[2, 3, 2] on cpu");
    real.setDouble(2, 5.0);
    real.setDouble(3, 6.0);
    assertThat(complex)
        .hasToString(
            "complex64[2, 3] on cpu [(0.0, 0.0), (5.0, 6.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0),"
                + " (0.0, 0.0)]");
    Tensor turned = complex.transpose(0, 1).viewAsReal();
    assertThat(turned.shape()).containsExactly(3, 2, 2);
    assertThat(turned.strides()).containsExactly(2, 6, 1);
    assertThat(turned.getDouble(5)).isEqualTo(6.0);
    Tensor plain = Tensor.of(1f);
    assertThat(plain.viewAsReal()).isSameAs(plain);
  }

  @Test
  void copiesGoInRowMajorOrderOfBothSides() {
    Tensor source = counting(3, 4);
    Tensor target = Tensor.allocate(DType.INT64, 6, 2);
    target.copyFrom(source.transpose(0, 1));
    assertThat(target.toLongArray()).containsExactly(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    Tensor scattered = Tensor.allocate(DType.INT64, 4, 3).transpose(0, 1);
    scattered.copyFrom(source);
    assertThat(scattered.toLongArray()).isEqualTo(LongStream.range(0, 12).toArray());
    assertThat(source.contiguous()).isSameAs(source);
    Tensor dense = source.transpose(0, 1).contiguous();
    assertThat(dense.isContiguous()).isTrue();
    assertThat(dense.toLongArray()).containsExactly(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> target.copyFrom(counting(11)))
        .withMessage("cannot copy int64[11] on cpu to int64[6, 2] on cpu");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> target.copyFrom(Tensor.allocate(DType.FLOAT64, 12)));
  }

  @Test
  void expandedDimensionsHaveStrideZero() {
    Tensor row = counting(3);
    Tensor expanded =
        Tensor.wrap(row.segment(), DType.INT64, new long[] {2, 3}, new long[] {0, 1}, Device.CPU);
    assertThat(expanded.isContiguous()).isFalse();
    assertThat(expanded.toLongArray()).containsExactly(0, 1, 2, 0, 1, 2);
  }

  @Test
  void sparseTensorsHoldTheirParts() {
    Tensor indices = counting(2, 3);
    Tensor values = Tensor.allocate(DType.FLOAT32, 3, 4);
    Tensor sparse = Tensor.sparse(indices, values, 10, 20, 4);
    assertThat(sparse.isSparse()).isTrue();
    assertThat(sparse.layout()).isEqualTo(Tensor.Layout.SPARSE_COO);
    assertThat(sparse.dtype()).isEqualTo(DType.FLOAT32);
    assertThat(sparse.numel()).isEqualTo(800);
    assertThat(sparse.indices()).isSameAs(indices);
    assertThat(sparse.values()).isSameAs(values);
    assertThat(sparse.isContiguous()).isFalse();
    assertThat(sparse.toString()).isEqualTo("float32[10, 20, 4] sparse on cpu");
    assertThatIllegalStateException().isThrownBy(sparse::segment);
    assertThatIllegalStateException().isThrownBy(() -> sparse.narrow(0, 0, 1));
    assertThatIllegalStateException().isThrownBy(() -> sparse.select(0, 0));
    assertThatIllegalStateException().isThrownBy(() -> sparse.transpose(0, 1));
    assertThatIllegalStateException().isThrownBy(() -> sparse.getDouble(0));
    assertThatIllegalStateException().isThrownBy(indices::indices);
    assertThatIllegalStateException().isThrownBy(indices::values);
  }

  @Test
  void sparseTensorsAreNotCopiedNorViewed() {
    Tensor place = Tensor.allocate(DType.INT64, 2, 1);
    Tensor huge = Tensor.sparse(place, Tensor.of(1f), 1L << 20, 1L << 20);
    assertThatIllegalStateException()
        .isThrownBy(huge::contiguous)
        .withMessageStartingWith("copy needs a dense host tensor");
    Tensor complex = Tensor.sparse(place, Tensor.allocate(DType.COMPLEX64, 1), 2, 2);
    assertThatIllegalStateException().isThrownBy(complex::viewAsReal);
  }

  @Test
  void sparsePartsMustFit() {
    Tensor indices = counting(2, 3);
    Tensor values = Tensor.allocate(DType.FLOAT32, 3, 4);
    assertSparseRefused("indices must be", Tensor.of(1, 2, 3), values, 10, 4);
    assertSparseRefused("indices must be", counting(3, 2).transpose(0, 1), values, 10, 20, 4);
    assertSparseRefused("values must be", indices, Tensor.allocate(DType.FLOAT32, 4), 10, 20);
    assertSparseRefused("does not fit 2 sparse dims", indices, values, 10, 4);
    assertSparseRefused("does not fit 2 sparse dims", indices, values, 10, 20, 5);
    Tensor elsewhere =
        Tensor.wrap(
            MemorySegment.ofAddress(64).reinterpret(64),
            DType.FLOAT32,
            new long[] {3},
            new long[] {1},
            Device.cuda(0));
    assertSparseRefused("indices are on cpu but values on", indices, elsewhere, 10, 20);
  }

  @Test
  void memoryOfADeviceIsNotTouched() {
    Tensor tensor =
        Tensor.wrap(
            MemorySegment.ofAddress(64).reinterpret(64),
            DType.FLOAT32,
            new long[] {4},
            new long[] {1},
            Device.cuda(1));
    assertThatIllegalStateException().isThrownBy(() -> tensor.fill(0));
    assertThatIllegalStateException().isThrownBy(() -> tensor.getDouble(0));
    assertThatIllegalStateException().isThrownBy(() -> tensor.setDouble(0, 1.0));
    assertThatIllegalStateException().isThrownBy(tensor::copy);
    assertThatIllegalStateException().isThrownBy(() -> Tensor.of(1f).copyFrom(tensor));
    assertThat(tensor.narrow(0, 2, 2).segment().address()).isEqualTo(72);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 2, 3, 1000, 16_384, 16_385, 50_001})
  void aFillReachesAllElementsOfAViewAndNoOthers(long count) {
    Tensor whole = Tensor.allocate(DType.INT32, count + 3);
    Tensor view = whole.narrow(0, 2, count);
    view.fillLong(-7);
    int[] expected = new int[(int) count + 3];
    Arrays.fill(expected, 2, (int) count + 2, -7);
    assertThat(whole.toIntArray()).isEqualTo(expected);
    view.fill(5);
    Arrays.fill(expected, 2, (int) count + 2, 5);
    assertThat(whole.toIntArray()).isEqualTo(expected);

    Tensor column = Tensor.allocate(DType.INT32, count, 2).narrow(1, 1, 1);
    int[] nines = new int[(int) count];
    Arrays.fill(nines, 9);
    assertThat(column.fillLong(9).toIntArray()).isEqualTo(nines);
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.MATCH_NONE,
      names = {"COMPLEX.*", "FLOAT8.*"})
  void everyTypeHoldsSmallWholeNumbers(DType dtype) {
    Tensor tensor = Tensor.allocate(dtype, 2, 3).transpose(0, 1).fill(1);
    assertThat(tensor.toDoubleArray()).containsExactly(1, 1, 1, 1, 1, 1);
    tensor.setDouble(3, 0.0);
    assertThat(tensor.toFloatArray()).containsExactly(1, 1, 1, 0, 1, 1);
    if (dtype.isFloatingPoint()) {
      assertThatIllegalStateException().isThrownBy(() -> tensor.getLong(0));
      assertThatIllegalStateException().isThrownBy(() -> tensor.setLong(0, 1L));
    } else {
      tensor.setLong(0, 257L << 32 | 1);
      assertThat(tensor.getLong(0)).isEqualTo(dtype == DType.INT64 ? 257L << 32 | 1 : 1);
    }
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.MATCH_ANY,
      names = {"COMPLEX.*", "FLOAT8.*"})
  void whatIsNoSingleNumberIsNotConverted(DType dtype) {
    Tensor tensor = Tensor.allocate(dtype, 1);
    String advice =
        dtype.isComplex()
            ? " has two numbers per element; use viewAsReal()"
            : " can be moved but not converted; view(DType.UINT8) gives its bytes";
    List<ThrowingCallable> calls =
        List.of(
            () -> tensor.getDouble(0),
            () -> tensor.setDouble(0, 1),
            () -> tensor.getFloat(0),
            () -> tensor.setFloat(0, 1),
            () -> tensor.getLong(0),
            () -> tensor.setLong(0, 1),
            () -> tensor.fill(1),
            () -> tensor.fillLong(1),
            () -> tensor.copyTo(new float[1]),
            () -> tensor.copyTo(new double[1]),
            () -> tensor.copyTo(new int[1]),
            () -> tensor.copyTo(new long[1]),
            () -> tensor.copyFrom(new float[1]),
            () -> tensor.copyFrom(new double[1]),
            () -> tensor.copyFrom(new int[1]),
            () -> tensor.copyFrom(new long[1]),
            tensor::toFloatArray,
            tensor::toDoubleArray,
            tensor::toIntArray,
            tensor::toLongArray,
            () -> Tensor.of(dtype, 1f));
    for (ThrowingCallable call : calls) {
      assertThatIllegalStateException().isThrownBy(call).withMessage(dtype.label() + advice);
    }
  }

  @Test
  void bytesOfAnotherTypeOfEqualSizeAreViewed() {
    Tensor floats = Tensor.of(1f, -2f);
    assertThat(floats.view(DType.INT32).toIntArray()).containsExactly(0x3f800000, 0xc0000000);
    Tensor opaque = Tensor.allocate(DType.FLOAT8_E5M2, 2, 2).transpose(0, 1);
    opaque.view(DType.UINT8).setLong(1, 0xc0);
    assertThat(opaque)
        .hasToString("float8_e5m2[2, 2] strides [1, 2] on cpu [0x00, 0xc0, 0x00, 0x00]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> floats.view(DType.INT64))
        .withMessage(
            "cannot view float32[2] on cpu as int64: elements of 4 bytes are not elements of 8");
  }

  @Test
  void wrappedArraysShareTheirElements() {
    float[] floats = {1, 2};
    double[] doubles = {3};
    int[] ints = {4};
    long[] longs = {5};
    Tensor.wrap(floats).setFloat(1, 7);
    Tensor.wrap(doubles).fill(8);
    Tensor.wrap(ints).fillLong(9);
    Tensor.wrap(longs).setLong(0, Long.MAX_VALUE);
    assertThat(floats).containsExactly(1, 7);
    assertThat(doubles).containsExactly(8);
    assertThat(ints).containsExactly(9);
    assertThat(longs).containsExactly(Long.MAX_VALUE);
    assertThat(Tensor.wrap(floats).describe()).isEqualTo("float32[2] on cpu");
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.MATCH_NONE,
      names = {"COMPLEX.*", "FLOAT8.*", "BOOL"})
  void arraysAreCopiedInAndOutAtAnyStrides(DType dtype) {
    for (Tensor tensor :
        List.of(Tensor.allocate(dtype, 2, 3), Tensor.allocate(dtype, 3, 2).transpose(0, 1))) {
      tensor.copyFrom(new float[] {1, 2, 3, 4, 5, 6});
      float[] floats = new float[6];
      tensor.copyTo(floats);
      assertThat(floats).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(tensor.select(0, 1).getFloat(0)).isEqualTo(4);
      tensor.copyFrom(new double[] {6, 5, 4, 3, 2, 1});
      double[] doubles = new double[6];
      tensor.copyTo(doubles);
      assertThat(doubles).containsExactly(6, 5, 4, 3, 2, 1);
      if (dtype.isFloatingPoint()) {
        assertThatIllegalStateException().isThrownBy(() -> tensor.copyFrom(new long[6]));
        assertThatIllegalStateException().isThrownBy(() -> tensor.copyTo(new int[6]));
        continue;
      }
      tensor.copyFrom(new int[] {7, 8, 9, 10, 11, 12});
      assertThat(tensor.toLongArray()).containsExactly(7, 8, 9, 10, 11, 12);
      tensor.copyFrom(new long[] {1, 1, 2, 2, 3, 3});
      long[] longs = new long[6];
      tensor.copyTo(longs);
      assertThat(longs).containsExactly(1, 1, 2, 2, 3, 3);
    }
  }

  @Test
  void arraysOfAnotherLengthAreRefused() {
    Tensor tensor = Tensor.of(1f, 2f);
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> tensor.copyFrom(new float[3]), () -> tensor.copyTo(new double[3]))) {
      assertThatIllegalArgumentException()
          .isThrownBy(call)
          .withMessage("the array has 3 elements, but the tensor has 2: float32[2] on cpu");
    }
  }

  @Test
  void floatsAreRoundedToHalves() {
    assertThat(Tensor.of(DType.BFLOAT16, 1, 1.01f, -3.14159f).toFloatArray())
        .containsExactly(1, 1.0078125f, -3.140625f);
    assertThat(Tensor.of(DType.FLOAT16, 1.01f, 65520).toFloatArray())
        .containsExactly(1.0097656f, Float.POSITIVE_INFINITY);
    assertThat(Tensor.of(DType.FLOAT64, 0.5f)).hasToString("float64[1] on cpu [0.5]");
  }

  @Test
  void aDimensionIsUnboundIntoItsIndices() {
    Tensor tensor = Tensor.of(1f, 2f, 3f, 4f, 5f, 6f).view(2, 3);
    assertThat(tensor.unbind(0))
        .map(Tensor::toFloatArray)
        .containsExactly(new float[] {1, 2, 3}, new float[] {4, 5, 6});
    List<Tensor> columns = tensor.unbind(1);
    assertThat(columns).hasSize(3);
    columns.get(2).fill(0);
    assertThat(tensor.toFloatArray()).containsExactly(1, 2, 0, 4, 5, 0);
    assertOutside("no dimension 2 in float32[2, 3] on cpu", () -> tensor.unbind(2));
  }

  @Test
  void numbersAreCutToIntegers() {
    assertThat(set(DType.INT8, 300.9)).isEqualTo(44);
    assertThat(set(DType.INT8, -1.9)).isEqualTo(-1);
    assertThat(set(DType.UINT8, -1)).isEqualTo(255);
    assertThat(set(DType.INT16, 65535)).isEqualTo(-1);
    assertThat(set(DType.INT64, 1e30)).isEqualTo(Long.MAX_VALUE);
    assertThat(set(DType.BOOL, 0.001)).isEqualTo(1);
    assertThat(set(DType.BOOL, -0.0)).isZero();
  }

  @Test
  void numbersAreRoundedOnceToHalves() {
    // A double just above the midpoint of two neighbors; rounded to float, it is the midpoint.
    double above = 1 + 0x1p-11 + 0x1p-40;
    assertThat(set(DType.FLOAT16, above)).isEqualTo(1 + 0x1p-10);
    assertThat(set(DType.FLOAT16, 1 + 0x1p-11)).isEqualTo(1);
    assertThat(set(DType.FLOAT16, 1 + 3 * 0x1p-11)).isEqualTo(1 + 2 * 0x1p-10);
    assertThat(set(DType.BFLOAT16, 1 + 0x1p-8 + 0x1p-40)).isEqualTo(1 + 0x1p-7);
    assertThat(set(DType.BFLOAT16, -1 - 0x1p-8 - 0x1p-40)).isEqualTo(-1 - 0x1p-7);
    assertThat(set(DType.BFLOAT16, 1 + 0x1p-8)).isEqualTo(1);
    assertThat(set(DType.FLOAT16, 65519.999)).isEqualTo(65504);
    assertThat(set(DType.FLOAT16, 65520)).isInfinite();
    assertThat(set(DType.BFLOAT16, -1e300)).isEqualTo(Double.NEGATIVE_INFINITY);
    assertThat(set(DType.FLOAT16, 0x1p-25)).isZero();
    assertThat(set(DType.FLOAT16, 0x1.0001p-25)).isEqualTo(0x1p-24);
    assertThat(set(DType.BFLOAT16, 0x1.0000001p-134)).isEqualTo(0x1p-133);
    assertThat(1 / set(DType.BFLOAT16, -Double.MIN_VALUE)).isEqualTo(Double.NEGATIVE_INFINITY);
    assertThat(set(DType.FLOAT16, Double.NaN)).isNaN();
    assertThat(set(DType.BFLOAT16, Double.NaN)).isNaN();
  }

  private static double set(DType dtype, double value) {
    Tensor tensor = Tensor.allocate(dtype, 1);
    tensor.setDouble(0, value);
    return tensor.getDouble(0);
  }

  private static void assertSparseRefused(
      String message, Tensor indices, Tensor values, long... shape) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Tensor.sparse(indices, values, shape))
        .withMessageContaining(message);
  }

  private static void assertOutside(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IndexOutOfBoundsException.class).hasMessage(message);
  }
}
