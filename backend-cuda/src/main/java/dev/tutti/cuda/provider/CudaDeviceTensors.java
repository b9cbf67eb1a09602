package dev.tutti.cuda.provider;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.function.Supplier;

/** The provider of tensors on {@code cuda}. */
public final class CudaDeviceTensors implements DeviceTensors {
  private final Supplier<Cuda> cuda;

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. Loads nothing. */
  public CudaDeviceTensors() {
    this(Cuda::get);
  }

  /**
   * Creates a provider for other devices.
   *
   * @param cuda opens the CUDA driver
   */
  public CudaDeviceTensors(Supplier<Cuda> cuda) {
    this.cuda = cuda;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return "cuda";
  }

  private CudaDevice of(Device device) {
    return cuda.get().device(device.index());
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long... shape) {
    return of(device).tensors().allocate(arena, dtype, shape);
  }

  @Override
  public void zero(Tensor tensor) {
    if (tensor.byteSize() > 0) {
      CudaDevice device = of(tensor.device());
      CudaStream stream = device.currentStream();
      DeviceCopy.keepFor(device, tensor, stream);
      Parts.of(device).context().enter();
      Parts.of(device)
          .context()
          .driver()
          .streams()
          .fill(tensor.segment().address(), (byte) 0, tensor.byteSize(), stream.handle());
    }
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    if (!target.device().equals(source.device())) {
      throw new IllegalArgumentException(
          "cannot copy " + source.describe() + " to " + target.describe());
    }
    CudaDevice device = of(target.device());
    CudaStream stream = device.currentStream();
    DeviceCopy.keepFor(device, target, stream);
    DeviceCopy.keepFor(device, source, stream);
    DeviceCopy.copy(device, target, source);
  }

  @Override
  public void copyToHost(Tensor host, Tensor source) {
    of(source.device()).tensors().copyToHost(host, source);
  }

  @Override
  public void copyFromHost(Tensor target, Tensor host) {
    of(target.device()).tensors().copyFromHost(target, host);
  }
}
