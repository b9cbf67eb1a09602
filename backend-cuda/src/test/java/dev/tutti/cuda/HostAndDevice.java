package dev.tutti.cuda;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Gives a group a backend for a fake device and one for the host.
 *
 * @param devices the backend for the device
 * @param index the number of the rank's device
 */
record HostAndDevice(BackendProvider devices, int index) implements BackendProvider {
  private static final GlooProvider HOST = new GlooProvider(List.of());

  private BackendProvider of(String deviceType) {
    return Device.CPU.type().equals(deviceType) ? HOST : devices;
  }

  @Override
  public String name() {
    return "gloo and " + devices.name();
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of(Device.CPU.type(), "cuda");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return of(deviceType).capabilities(deviceType);
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return devices.unusableReason(settings);
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    if (context.device().isCpu()) {
      return HOST.create(context);
    }
    return devices.create(
        BackendContext.builder(
                context.group(), context.rank(), context.size(), context.store(), context.timeout())
            .globalRanks(context.globalRanks())
            .device("cuda", Device.cuda(index))
            .settings(context.settings())
            .onFailure(context.onFailure())
            .time(context.time())
            .build());
  }
}
