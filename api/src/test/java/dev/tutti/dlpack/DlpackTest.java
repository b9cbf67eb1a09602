package dev.tutti.dlpack;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(300)
class DlpackTest {
  /* Offsets in bytes, as a C compiler lays out the header's structures on 64-bit platforms. */
  private static final int DATA = 0;
  private static final int DEVICE_TYPE = 8;
  private static final int DEVICE_ID = 12;
  private static final int NDIM = 16;
  private static final int CODE = 20;
  private static final int BITS = 21;
  private static final int LANES = 22;
  private static final int SHAPE = 24;
  private static final int STRIDES = 32;
  private static final int BYTE_OFFSET = 40;
  private static final int DELETER = 56;
  private static final int VERSIONED_FLAGS = 24;
  private static final int VERSIONED_TENSOR = 32;

  private static final Map<DType, Integer> CODES =
      Map.ofEntries(
          Map.entry(DType.FLOAT32, 2),
          Map.entry(DType.FLOAT64, 2),
          Map.entry(DType.FLOAT16, 2),
          Map.entry(DType.BFLOAT16, 4),
          Map.entry(DType.INT8, 0),
          Map.entry(DType.UINT8, 1),
          Map.entry(DType.BOOL, 6),
          Map.entry(DType.INT16, 0),
          Map.entry(DType.INT32, 0),
          Map.entry(DType.INT64, 0),
          Map.entry(DType.COMPLEX64, 5),
          Map.entry(DType.COMPLEX128, 5),
          Map.entry(DType.FLOAT8_E4M3FN, 10),
          Map.entry(DType.FLOAT8_E4M3FNUZ, 11),
          Map.entry(DType.FLOAT8_E5M2, 12),
          Map.entry(DType.FLOAT8_E5M2FNUZ, 13));

  @Test
  void structuresAreLaidOutAsInC() {
    assertThat(Dlpack.TENSOR.byteSize()).isEqualTo(48);
    assertThat(Dlpack.MANAGED_TENSOR.byteSize()).isEqualTo(64);
    assertThat(Dlpack.MANAGED_TENSOR_VERSIONED.byteSize()).isEqualTo(80);
    assertThat(Dlpack.TENSOR.byteOffset(groupElement("byte_offset"))).isEqualTo(BYTE_OFFSET);
    assertThat(Dlpack.MANAGED_TENSOR.byteOffset(groupElement("deleter"))).isEqualTo(DELETER);
    assertThat(Dlpack.MANAGED_TENSOR_VERSIONED.byteOffset(groupElement("dl_tensor")))
        .isEqualTo(VERSIONED_TENSOR);
  }

  private static Tensor numbers(Tensor tensor) {
    return tensor.dtype().isOpaque() ? tensor.view(DType.UINT8) : tensor.viewAsReal();
  }

  @ParameterizedTest
  @EnumSource
  void everyTypeIsGivenAndTaken(DType dtype) {
    Tensor tensor = Tensor.allocate(dtype, 2, 3).transpose(0, 1);
    numbers(tensor).fill(1);
    MemorySegment managed = Dlpack.give(tensor);
    assertThat(managed.get(ADDRESS, DATA)).isEqualTo(MemorySegment.ofAddress(address(tensor)));
    assertThat(managed.get(JAVA_INT, DEVICE_TYPE)).isEqualTo(1);
    assertThat(managed.get(JAVA_INT, DEVICE_ID)).isZero();
    assertThat(managed.get(JAVA_INT, NDIM)).isEqualTo(2);
    assertThat((int) managed.get(JAVA_BYTE, CODE)).isEqualTo(CODES.get(dtype));
    assertThat(managed.get(JAVA_BYTE, BITS) & 0xff).isEqualTo(dtype.byteSize() * 8);
    assertThat(managed.get(JAVA_SHORT, LANES)).isEqualTo((short) 1);
    assertThat(longs(managed, SHAPE, 2)).containsExactly(3, 2);
    assertThat(longs(managed, STRIDES, 2)).containsExactly(1, 3);
    assertThat(managed.get(JAVA_LONG, BYTE_OFFSET)).isZero();
    try (Arena arena = Arena.ofConfined()) {
      Tensor taken = Dlpack.take(managed, arena);
      assertThat(taken.toString()).isEqualTo(tensor.toString());
      assertThat(address(taken)).isEqualTo(address(tensor));
      assertThat(numbers(taken).toDoubleArray()).containsOnly(1);
      numbers(taken).setDouble(5, 0.0);
      assertThat(numbers(tensor).getDouble(5)).isZero();
      assertThat(DlpackExports.isExported(managed)).isTrue();
    }
    assertThat(DlpackExports.isExported(managed)).isFalse();
  }

  @Test
  void theVersionedStructureSaysWhatIsReadOnly() {
    Tensor writable = Tensor.of(1f, 2f, 3f);
    Tensor readOnly = Tensor.wrap(writable.segment().asReadOnly(), DType.FLOAT32, 3);
    for (Tensor tensor : new Tensor[] {writable, readOnly}) {
      boolean flag = tensor == readOnly;
      MemorySegment managed = Dlpack.giveVersioned(tensor);
      assertThat(managed.get(JAVA_INT, 0)).isEqualTo(1);
      assertThat(managed.get(JAVA_INT, 4)).isEqualTo(1);
      assertThat(managed.get(JAVA_LONG, VERSIONED_FLAGS)).isEqualTo(flag ? 1 : 0);
      assertThat(managed.get(ADDRESS, VERSIONED_TENSOR).address()).isEqualTo(address(tensor));
      try (Arena arena = Arena.ofShared()) {
        Tensor taken = Dlpack.takeVersioned(managed, arena);
        assertThat(taken.segment().isReadOnly()).isEqualTo(flag);
        assertThat(taken.toFloatArray()).containsExactly(1, 2, 3);
      }
      assertThat(DlpackExports.isExported(managed)).isFalse();
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Dlpack.give(readOnly))
        .withMessageContaining("tensor is read-only");
  }

  @Test
  void scalarsAndEmptyTensorsAreGivenAndTaken() {
    for (Tensor tensor :
        new Tensor[] {Tensor.allocate(DType.INT32).fill(7), Tensor.allocate(DType.INT32, 0, 4)}) {
      MemorySegment managed = Dlpack.give(tensor);
      boolean empty = tensor.numel() == 0;
      assertThat(managed.get(ADDRESS, DATA).address()).isEqualTo(empty ? 0 : address(tensor));
      try (Arena arena = Arena.ofConfined()) {
        Tensor taken = Dlpack.take(managed, arena);
        assertThat(taken.shape()).isEqualTo(tensor.shape());
        assertThat(taken.toLongArray()).isEqualTo(tensor.toLongArray());
      }
      assertThat(DlpackExports.isExported(managed)).isFalse();
    }
  }

  @Test
  void whatCannotBeGivenIsRefused() {
    Tensor heap = Tensor.wrap(MemorySegment.ofArray(new float[4]), DType.FLOAT32, 4);
    Tensor indices = Tensor.allocate(DType.INT64, 1, 2);
    Tensor sparse = Tensor.sparse(indices, Tensor.of(1f, 2f), 9);
    for (Tensor tensor : new Tensor[] {heap, sparse}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Dlpack.give(tensor))
          .withMessage("tensor must be dense and outside the Java heap: " + tensor.describe());
      assertThatIllegalArgumentException().isThrownBy(() -> Dlpack.giveVersioned(tensor));
    }
  }

  @Test
  void aSecondCallOfTheDeleterDoesNothing() {
    MemorySegment managed = Dlpack.give(Tensor.of(1f));
    MemorySegment deleter = managed.get(ADDRESS, DELETER);
    MemorySegment self = MemorySegment.ofAddress(managed.address());
    DlpackExports.delete(deleter, self);
    assertThat(DlpackExports.isExported(managed)).isFalse();
    Logger logger = Logger.getLogger(DlpackExports.class.getName());
    logger.setLevel(Level.OFF);
    try {
      DlpackExports.delete(deleter, self);
    } finally {
      logger.setLevel(null);
    }
    assertThat(DlpackExports.isExported(managed)).isFalse();
  }

  @Test
  void structuresOfNativeCodeAreReadFromTheirOffset() {
    try (NativeTensor source = new NativeTensor()) {
      source.tensor.set(JAVA_LONG, BYTE_OFFSET, 8L);
      try (Arena arena = Arena.ofConfined()) {
        Tensor taken = Dlpack.take(source.managed, arena);
        assertThat(taken.toString()).isEqualTo("int32[2, 2] strides [1, 2] on cpu [2, 4, 3, 5]");
        assertThat(taken.toLongArray()).containsExactly(2, 4, 3, 5);
        assertThat(source.deleted()).isZero();
      }
      assertThat(source.deleted()).isEqualTo(1);
    }
  }

  @Test
  void noStridesMeanRowMajorOrder() {
    try (NativeTensor source = new NativeTensor();
        Arena arena = Arena.ofConfined()) {
      source.tensor.set(ADDRESS, STRIDES, MemorySegment.NULL);
      Tensor taken = Dlpack.take(source.managed, arena);
      assertThat(taken.isContiguous()).isTrue();
      assertThat(taken.toLongArray()).containsExactly(0, 1, 2, 3);
    }
  }

  @Test
  void aMissingDeleterIsNotCalled() {
    try (NativeTensor source = new NativeTensor()) {
      source.managed.set(ADDRESS, DELETER, MemorySegment.NULL);
      Arena arena = Arena.ofConfined();
      Tensor taken = Dlpack.take(source.managed, arena);
      arena.close();
      assertThat(source.deleted()).isZero();
      assertThatThrownBy(() -> taken.getLong(0)).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void theDeleterRunsOnceNoViewIsReachable() {
    try (NativeTensor source = new NativeTensor()) {
      Tensor view = Dlpack.take(source.managed).select(0, 1);
      System.gc();
      assertThat(view.toLongArray()).containsExactly(1, 3);
      assertThat(source.deleted()).isZero();
      view = Tensor.of(1f);
      long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(240);
      while (source.deleted() == 0 && System.nanoTime() - limit < 0) {
        System.gc();
        LockSupport.parkNanos(10_000_000); // the thread that deletes cannot run during a collection
      }
      assertThat(view.numel()).isEqualTo(1);
      assertThat(source.deleted()).isEqualTo(1);
    }
  }

  @Test
  void devicesAreTold() {
    try (NativeTensor source = new NativeTensor();
        Arena arena = Arena.ofConfined()) {
      source.managed.set(ADDRESS, DELETER, MemorySegment.NULL);
      source.tensor.set(JAVA_INT, DEVICE_TYPE, 3);
      assertThat(Dlpack.take(source.managed, arena).device()).isEqualTo(Device.CPU);
      source.tensor.set(JAVA_INT, DEVICE_TYPE, 2);
      source.tensor.set(JAVA_INT, DEVICE_ID, 1);
      Tensor taken = Dlpack.take(source.managed, arena);
      assertThat(taken.device()).isEqualTo(Device.cuda(1));
      MemorySegment given = Dlpack.give(taken);
      assertThat(given.get(JAVA_INT, DEVICE_TYPE)).isEqualTo(2);
      assertThat(given.get(JAVA_INT, DEVICE_ID)).isEqualTo(1);
      DlpackExports.delete(given.get(ADDRESS, DELETER), MemorySegment.ofAddress(given.address()));
      assertThat(DlpackExports.isExported(given)).isFalse();
    }
  }

  @Test
  void structuresThatMakeNoSenseAreRefusedAndStayTheCallers() {
    assertRefused("ndim must be in 0..64, not -1", t -> t.set(JAVA_INT, NDIM, -1));
    assertRefused("ndim must be in 0..64, not 65", t -> t.set(JAVA_INT, NDIM, 65));
    assertRefused("device_type must be 1 (cpu)", t -> t.set(JAVA_INT, DEVICE_TYPE, 10));
    assertRefused("device_id must not be negative", t -> t.set(JAVA_INT, DEVICE_ID, -1));
    assertRefused("no element type for code 3, 32", t -> t.set(JAVA_BYTE, CODE, (byte) 3));
    assertRefused("code 0, 128 bits, 1 lanes", t -> t.set(JAVA_BYTE, BITS, (byte) 128));
    assertRefused("code 0, 32 bits, 4 lanes", t -> t.set(JAVA_SHORT, LANES, (short) 4));
    assertRefused("data is null", t -> t.set(ADDRESS, DATA, MemorySegment.NULL));
    assertRefused("shape is null, but ndim is 2", t -> t.set(ADDRESS, SHAPE, MemorySegment.NULL));
    assertRefused("shape has the negative size -2", t -> at(t, SHAPE).set(JAVA_LONG, 8, -2L));
    assertRefused("strides has the negative stride", t -> at(t, STRIDES).set(JAVA_LONG, 0, -1L));
    assertRefused("beyond the address space", t -> at(t, STRIDES).set(JAVA_LONG, 0, 1L << 62));
    assertRefused("beyond the address space", t -> at(t, SHAPE).set(JAVA_LONG, 0, Long.MAX_VALUE));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Dlpack.take(MemorySegment.NULL))
        .withMessage("DLPack tensor refused: the pointer is null");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Dlpack.takeVersioned(MemorySegment.ofArray(new long[10])))
        .withMessageContaining("null");
  }

  @Test
  void moreElementsThanThereCanBeAreRefusedAndStayTheCallers() {
    try (NativeTensor source = new NativeTensor()) {
      for (long at : new long[] {0, 8}) {
        at(source.tensor, SHAPE).set(JAVA_LONG, at, 1L << 40);
        at(source.tensor, STRIDES).set(JAVA_LONG, at, 0L);
      }
      Arena arena = Arena.ofConfined();
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Dlpack.take(source.managed, arena))
          .withMessageContaining("too many elements");
      arena.close();
      assertThat(source.deleted()).isZero();
    }
  }

  @Test
  void freedMemoryIsNotGiven() {
    Tensor tensor;
    try (Arena arena = Arena.ofShared()) {
      tensor = Tensor.allocate(arena, DType.FLOAT32, 4);
    }
    assertThatThrownBy(() -> Dlpack.give(tensor))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the memory of float32[4] on cpu was freed");
  }

  @Test
  void otherMajorVersionsAreRefused() {
    try (NativeTensor source = new NativeTensor()) {
      source.versioned.set(JAVA_INT, 0, 2);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Dlpack.takeVersioned(source.versioned))
          .withMessage("DLPack tensor refused: its major version is 2, expected 1");
      source.versioned.set(JAVA_INT, 0, 1);
      source.versioned.set(JAVA_INT, 4, 99);
      try (Arena arena = Arena.ofConfined()) {
        assertThat(Dlpack.takeVersioned(source.versioned, arena).numel()).isEqualTo(4);
      }
      assertThat(source.deleted()).isEqualTo(1);
    }
  }

  private static void assertRefused(String message, Consumer<MemorySegment> damage) {
    try (NativeTensor source = new NativeTensor()) {
      damage.accept(source.tensor);
      Arena arena = Arena.ofConfined();
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Dlpack.take(source.managed, arena))
          .withMessageStartingWith("DLPack tensor refused: ")
          .withMessageContaining(message);
      arena.close();
      assertThat(source.deleted()).isZero();
    }
  }

  private static MemorySegment at(MemorySegment tensor, int field) {
    return tensor.get(ADDRESS, field).reinterpret(16);
  }

  private static long[] longs(MemorySegment managed, int field, int count) {
    return managed.get(ADDRESS, field).reinterpret(count * 8L).toArray(JAVA_LONG);
  }

  private static long address(Tensor tensor) {
    return tensor.segment().address();
  }
}
