package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.BatchNorm1dImpl;
import org.bytedeco.pytorch.BatchNormOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.SequentialImpl;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TensorsTest {
  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void everyTypeIsViewedBothWays(DType dtype) {
    try (Arena arena = Arena.ofConfined()) {
      Tensor ours = Tensor.allocate(arena, dtype, 3, 5);
      for (int i = 0; i < ours.byteSize(); i++) {
        ours.segment().set(java.lang.foreign.ValueLayout.JAVA_BYTE, i, (byte) (i % 2));
      }
      try (org.bytedeco.pytorch.Tensor torchs = Tensors.toTorch(ours)) {
        assertThat(torchs.dim()).isEqualTo(2);
        assertThat(torchs.size(1)).isEqualTo(5);
        assertThat(torchs.data_ptr().address()).isEqualTo(ours.segment().address());
        Tensor again = Tensors.of(torchs);
        assertThat(again.describe()).isEqualTo(ours.describe());
        assertThat(again.segment().mismatch(ours.segment())).isEqualTo(-1);
        assertThat(again.segment().address()).isEqualTo(ours.segment().address());
      }
    }
  }

  @Test
  void aModuleIsViewedByNames() {
    SequentialImpl module = new SequentialImpl();
    module.push_back(new LinearImpl(3, 2));
    module.push_back(new BatchNorm1dImpl(new BatchNormOptions(2)));
    Map<String, Tensor> views = Tensors.ofModule(module);
    assertThat(views.keySet())
        .containsExactly(
            "0.weight",
            "0.bias",
            "1.weight",
            "1.bias",
            "1.running_mean",
            "1.running_var",
            "1.num_batches_tracked");
    views.get("0.bias").fill(7);
    assertThat(module.parameters().get(1).sum().item_float()).isEqualTo(14);
    assertThat(views.get("0.weight").shape()).containsExactly(2, 3);
    assertThat(views.get("1.num_batches_tracked").dtype()).isEqualTo(DType.INT64);
  }

  @Test
  void whatOneSideWritesTheOtherReads() {
    org.bytedeco.pytorch.Tensor torchs = torch.zeros(2, 3);
    Tensor ours = Tensors.of(torchs);
    assertThat(ours.device()).isEqualTo(Device.CPU);
    ours.setFloat(4, 7);
    assertThat(torchs.get(1).get(1).item_float()).isEqualTo(7);

    Tensor mine = Tensor.of(1f, 2f, 3f);
    org.bytedeco.pytorch.Tensor theirs = Tensors.toTorch(mine);
    theirs.mul_(new Scalar(2));
    assertThat(mine.toFloatArray()).containsExactly(2, 4, 6);
  }

  @Test
  void stridesAreKept() {
    org.bytedeco.pytorch.Tensor transposed = torch.arange(new Scalar(6f)).view(2, 3).t();
    Tensor ours = Tensors.of(transposed);
    assertThat(ours.shape()).containsExactly(3, 2);
    assertThat(ours.strides()).containsExactly(1, 3);
    assertThat(ours.isContiguous()).isFalse();

    org.bytedeco.pytorch.Tensor back = Tensors.toTorch(ours);
    assertThat(back.stride(1)).isEqualTo(3);
    assertThat(back.equal(transposed)).isTrue();
  }

  @Test
  void scalarsAndEmptyTensorsAreViewed() {
    Tensor scalar = Tensors.of(torch.tensor(4.5f).view());
    assertThat(scalar.dim()).isZero();
    assertThat(scalar.getFloat(0)).isEqualTo(4.5f);
    Tensor empty = Tensors.of(torch.zeros(0, 3));
    assertThat(empty.shape()).containsExactly(0, 3);
    assertThat(empty.numel()).isZero();
    try (org.bytedeco.pytorch.Tensor back = Tensors.toTorch(empty)) {
      assertThat(Tensors.of(back).describe()).isEqualTo(empty.describe());
    }
  }

  @Test
  void aViewOutlivesTheTensorItWasMadeOf() {
    org.bytedeco.pytorch.Tensor torchs = torch.ones(1000);
    Tensor ours = Tensors.of(torchs);
    torchs.close();
    try (org.bytedeco.pytorch.Tensor other = torch.zeros(1000)) {
      assertThat(other.numel()).isEqualTo(1000);
      assertThat(ours.toFloatArray()).containsOnly(1);
    }
  }

  @Test
  void aViewKeepsTheMemoryThatItsTensorLeaves() {
    org.bytedeco.pytorch.Tensor torchs = torch.ones(1 << 22);
    Tensor ours = Tensors.of(torchs);
    torchs.set_data(torch.zeros(1 << 22));
    assertThat(ours.getFloat(1)).isEqualTo(1);
    assertThat(Tensors.of(torchs).getFloat(1)).isZero();

    LinearImpl layer = new LinearImpl(2048, 2048);
    layer.weight().detach().fill_(new Scalar(3f));
    Tensor weight = Tensors.of(layer.weight());
    layer.to(torch.ScalarType.Double, false);
    layer.weight().detach().fill_(new Scalar(4f));
    assertThat(weight.getFloat(2048 * 2048 - 1)).isEqualTo(3);
  }

  @Test
  void memoryThatIsViewedIsNotResized() {
    org.bytedeco.pytorch.Tensor torchs = torch.ones(1 << 22);
    Tensor ours = Tensors.of(torchs);
    assertThatThrownBy(() -> torchs.resize_(new long[] {1 << 24}, new MemoryFormatOptional()))
        .isInstanceOf(RuntimeException.class)
        .hasMessageContaining("not resizable");
    org.bytedeco.pytorch.Tensor larger = torch.ones(1 << 23);
    assertThatThrownBy(() -> torch.add_out(torchs, larger, larger))
        .isInstanceOf(RuntimeException.class)
        .hasMessageContaining("not resizable");
    assertThat(ours.getFloat(1)).isEqualTo(1);
    assertThatThrownBy(() -> Tensors.of(torchs))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(
            "the tensor ends at byte 33554432 of memory that has 16777216 bytes");
    torchs.resize_(new long[] {1 << 22}, new MemoryFormatOptional());
    torchs.detach().resize_(new long[] {10}, new MemoryFormatOptional());
    ours.setFloat(9, 5);
    assertThat(torchs.get(9).item_float()).isEqualTo(5);
  }

  @Test
  void memoryIsKeptUntilTheLastViewOfItIsGone() {
    Tensor ours = Tensor.allocate(DType.FLOAT32, 10);
    long address = ours.segment().address();
    org.bytedeco.pytorch.Tensor first = Tensors.toTorch(ours);
    org.bytedeco.pytorch.Tensor second = Tensors.toTorch(ours);
    assertThat(LentMemory.count(address)).isEqualTo(2);
    first.close();
    assertThat(LentMemory.count(address)).isEqualTo(1);
    org.bytedeco.pytorch.Tensor shared = new org.bytedeco.pytorch.Tensor(second);
    second.close();
    assertThat(LentMemory.count(address)).isEqualTo(1);
    shared.close();
    assertThat(LentMemory.count(address)).isZero();
  }

  @Test
  void theAllocatorOfDevicesWorksOnTheHostToo() {
    TorchAllocator allocator = new TorchAllocator();
    try (Arena arena = Arena.ofConfined()) {
      Tensor target = allocator.allocate(arena, Device.CPU, DType.FLOAT32, 6);
      allocator.copy(target, Tensor.of(1f, 2f, 3f, 4f, 5f, 6f));
      assertThat(target.toFloatArray()).containsExactly(1, 2, 3, 4, 5, 6);
      allocator.zero(target);
      assertThat(target.toFloatArray()).containsOnly(0);
    }
  }

  @Test
  void whatCannotBeViewedIsRefused() {
    org.bytedeco.pytorch.Tensor sparse = torch.ones(2, 2).to_sparse();
    assertThatThrownBy(() -> Tensors.of(sparse))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("only a defined and dense tensor");
    assertThatThrownBy(() -> Tensors.of(new org.bytedeco.pytorch.Tensor()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith("undefined");
    org.bytedeco.pytorch.Tensor complex = Tensors.toTorch(Tensor.allocate(DType.COMPLEX64, 2));
    assertThatThrownBy(() -> Tensors.of(complex.conj()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("resolve_conj()");
    assertThatThrownBy(() -> Tensors.toTorch(Tensor.wrap(new float[2])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dense tensors in native memory");
    MemorySegment fixed = Arena.ofAuto().allocate(8).asReadOnly();
    assertThatThrownBy(() -> Tensors.toTorch(pair(fixed)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("read-only memory");
    Tensor freed;
    try (Arena arena = Arena.ofShared()) {
      freed = pair(arena.allocate(8));
    }
    assertThatThrownBy(() -> Tensors.toTorch(freed))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has been freed");
    org.bytedeco.pytorch.Tensor unsigned =
        torch.empty(
            new long[] {2}, new TensorOptions(torch.ScalarType.UInt16), new MemoryFormatOptional());
    assertThatThrownBy(() -> Tensors.of(unsigned))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Tutti has no tensors of PyTorch type UInt16");
  }

  private static Tensor pair(MemorySegment memory) {
    return Tensor.wrap(memory, DType.FLOAT32, new long[] {2}, new long[] {1}, Device.CPU);
  }
}
