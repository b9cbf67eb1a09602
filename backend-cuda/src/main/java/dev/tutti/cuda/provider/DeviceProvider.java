package dev.tutti.cuda.provider;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** What the providers of backends on CUDA devices have in common. */
abstract class DeviceProvider implements BackendProvider {
  final Supplier<Cuda> cuda;
  final Supplier<Optional<String>> noDevice;
  final Function<Settings, NcclCalls> nccl;

  /**
   * Creates a provider.
   *
   * @param cuda opens the CUDA driver
   * @param noDevice returns why the driver cannot be opened, if so
   * @param nccl opens NCCL when it is first needed
   */
  DeviceProvider(
      Supplier<Cuda> cuda,
      Supplier<Optional<String>> noDevice,
      Function<Settings, NcclCalls> nccl) {
    this.cuda = cuda;
    this.noDevice = noDevice;
    this.nccl = nccl;
  }

  /** Returns the capabilities of a backend that reduces some types and has no monitored barrier. */
  static Capabilities capabilities(Predicate<DType> reduces, Feature... features) {
    Capabilities all = Capabilities.ofVersion1(features).without(OpType.MONITORED_BARRIER);
    EnumSet<DType> reducible = EnumSet.copyOf(all.reducible());
    reducible.removeIf(reduces.negate());
    return all.toBuilder().reducible(reducible).build();
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cuda");
  }

  @Override
  public int deviceCount() {
    return cuda.get().deviceCount();
  }

  /**
   * {@inheritDoc}
   *
   * @throws IndexOutOfBoundsException if there is no such device
   */
  @Override
  public DeviceSession openDevice(int index) {
    return new CudaSession(cuda.get().device(index));
  }
}
