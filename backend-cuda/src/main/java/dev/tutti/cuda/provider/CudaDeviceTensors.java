package dev.tutti.cuda.provider;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.HardwareQueues;
import dev.tutti.cuda.element.CudaUpdates;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.spi.DeviceStream;
import dev.tutti.spi.DeviceTensors;
import dev.tutti.spi.DeviceUpdates;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;

/** The provider of tensors on {@code cuda}. */
public final class CudaDeviceTensors implements DeviceTensors {
  private static final System.Logger LOG = System.getLogger(CudaDeviceTensors.class.getName());
  private static final Duration PATIENCE = Duration.ofSeconds(5);

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
      stream.keep(tensor);
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
    stream.keep(target);
    stream.keep(source);
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

  @Override
  public DeviceStream currentStream(Device device) {
    return of(device).currentStream();
  }

  @Override
  public Optional<DeviceUpdates> updates(Device device) {
    return Optional.of(new CudaUpdates(of(device)));
  }

  @Override
  public Optional<DeviceStream> takeStream(Device device) {
    return HardwareQueues.warning(Settings.fromEnvironment()).isPresent()
        ? Optional.empty()
        : Optional.ofNullable(Parts.of(of(device)).takeForCommunication());
  }

  @Override
  public void giveStream(DeviceStream stream) {
    CudaStream own = (CudaStream) stream;
    try {
      if (own.isCapturing()) {
        throw new IllegalStateException("it is being captured into a graph");
      }
      own.await(PATIENCE);
      Parts.of(own.device()).giveFromCommunication(own);
    } catch (TuttiException | IllegalStateException e) {
      LOG.log(Level.WARNING, "{0} is not used again: {1}", own, e.getMessage());
    }
  }
}
