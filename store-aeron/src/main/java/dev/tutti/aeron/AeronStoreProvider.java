package dev.tutti.aeron;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.wire.Unencrypted;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.StoreProvider;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.util.List;
import java.util.Optional;

/**
 * The provider of an {@link AeronStore} for {@code aeron://host:port}; the host rank also serves
 * it.
 */
public final class AeronStoreProvider implements StoreProvider {
  /** Creates the provider; called by the service loader. */
  public AeronStoreProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String scheme() {
    return "aeron";
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return Unencrypted.reason(settings).or(JvmFlags::missing);
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(
        AeronStoreOptions.TRANSPORT,
        AeronStoreOptions.DIRECTORY,
        AeronStoreOptions.DRIVER,
        AeronStoreOptions.LEASE,
        AeronStoreOptions.SPIN,
        JobToken.SETTING,
        TlsSettings.ENABLED);
  }

  @Override
  public Store open(Request request) {
    HostPort address = HostPort.ofServer(request.url());
    return new AeronStore(
        AeronStoreOptions.of(address.host(), address.port(), request.settings())
            .withServer(request.host())
            .withTimeout(request.timeout()),
        request.size());
  }
}
