package dev.tutti.pytorch;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.gradients.BucketAllocator;
import java.lang.foreign.Arena;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;

/**
 * An allocator of buckets that live until neither PyTorch nor Tutti uses them, as the program may
 * keep gradients. On the host, other ranks can read them where possible; on devices, PyTorch
 * allocates.
 */
final class TorchAllocator implements BucketAllocator {
  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
    if (device.isCpu()) {
      return Tensor.allocate(dtype, numel);
    }
    try (TensorOptions typed = new TensorOptions(Tensors.scalarType(dtype));
        TensorOptions options = typed.device(Tensors.deviceOf(device));
        MemoryFormatOptional format = new MemoryFormatOptional();
        org.bytedeco.pytorch.Tensor tensor = torch.empty(new long[] {numel}, options, format)) {
      return Tensors.of(tensor);
    }
  }

  @Override
  public void zero(Tensor tensor) {
    try (org.bytedeco.pytorch.Tensor view = Tensors.toTorch(tensor)) {
      view.zero_();
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    try (org.bytedeco.pytorch.Tensor to = Tensors.toTorch(target);
        org.bytedeco.pytorch.Tensor from = Tensors.toTorch(source)) {
      to.copy_(from.view(target.shape()));
    }
  }

  @Override
  public void convert(Tensor target, Tensor source) {
    copy(target, source); // PyTorch converts
  }
}
