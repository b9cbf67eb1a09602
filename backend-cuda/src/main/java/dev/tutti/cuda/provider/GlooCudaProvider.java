package dev.tutti.cuda.provider;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;
import dev.tutti.Setting;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.gloo.DeviceWork;
import dev.tutti.cuda.gloo.GlooCudaBackend;
import dev.tutti.cuda.gloo.PartSize;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/** The provider of CUDA tensors in Gloo groups: all collectives, with tensors of any strides. */
public final class GlooCudaProvider implements GlooDeviceProvider {
  private final Supplier<Cuda> cuda;

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. Loads nothing. */
  public GlooCudaProvider() {
    this(Cuda::get);
  }

  /**
   * Creates a provider for other devices.
   *
   * @param cuda opens the CUDA driver
   */
  public GlooCudaProvider(Supplier<Cuda> cuda) {
    this.cuda = cuda;
  }

  @Override
  public String deviceType() {
    return "cuda";
  }

  @Override
  public Capabilities capabilities(Capabilities host) {
    EnumSet<Feature> features = EnumSet.of(Feature.STRIDED_TENSORS);
    features.addAll(host.features());
    EnumSet<OpType> operations = EnumSet.noneOf(OpType.class);
    operations.addAll(host.operations());
    operations.removeIf(OpType::isPointToPoint);
    return host.toBuilder()
        .operations(operations)
        .features(features)
        .algorithms(List.of())
        .build()
        .without(Set.of(Feature.TAGS, Feature.SYMMETRIC_MEMORY));
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(PartSize.CHUNK_BYTES, DeviceWork.DIRECT);
  }

  @Override
  public Backend open(GlooGroup group) {
    Cuda own = cuda.get();
    DeviceWork devices = group.isOpenedByAll() ? DeviceWork.join(own, group) : null;
    return new GlooCudaBackend(own, group, devices);
  }
}
