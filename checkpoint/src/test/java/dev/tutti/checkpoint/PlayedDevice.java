package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A device whose memory holds the complement of each byte, so that only its copies make sense. */
public final class PlayedDevice implements DeviceTensors {
  static final Device DEVICE = new Device("played", 0);

  /** Creates a tensor with a value in each element. */
  static Tensor filled(DType dtype, double value, long... shape) {
    Tensor host = Tensor.allocate(dtype, shape).fill(value);
    PlayedDevice device = new PlayedDevice();
    Tensor tensor = device.allocate(Arena.ofAuto(), DEVICE, dtype, shape);
    device.copyFromHost(tensor, host);
    return tensor;
  }

  /** Returns a copy on the host. */
  static Tensor read(Tensor tensor) {
    Tensor host = Tensor.allocate(tensor.dtype(), tensor.shape());
    new PlayedDevice().copyToHost(host, tensor);
    return host;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return DEVICE.type();
  }

  @Override
  public Tensor allocate(Arena arena, Device device, DType dtype, long... shape) {
    Tensor dense = Tensor.allocate(dtype, shape);
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int i = shape.length - 1; i >= 0; i--) {
      strides[i] = stride;
      stride *= shape[i];
    }
    return Tensor.wrap(dense.segment(), dtype, shape, strides, device);
  }

  @Override
  public void zero(Tensor tensor) {
    tensor.segment().fill((byte) -1);
  }

  @Override
  public void copy(Tensor target, Tensor source) {
    target.segment().copyFrom(source.segment());
  }

  @Override
  public void copyToHost(Tensor host, Tensor source) {
    complement(host.segment(), source.segment());
  }

  @Override
  public void copyFromHost(Tensor target, Tensor host) {
    complement(target.segment(), host.segment());
  }

  private static void complement(MemorySegment target, MemorySegment source) {
    byte[] bytes = source.toArray(ValueLayout.JAVA_BYTE);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) ~bytes[i];
    }
    target.copyFrom(MemorySegment.ofArray(bytes));
  }
}
