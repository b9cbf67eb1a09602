package dev.tutti.store.tcp;

import dev.tutti.Setting;
import dev.tutti.Store;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.StoreProvider;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.util.List;

/** Opens a {@link TcpStore} for {@code tcp://host:port}; the host rank also serves it. */
public final class TcpStoreProvider implements StoreProvider {
  /** Creates the provider; called by the service loader. */
  public TcpStoreProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String scheme() {
    return "tcp";
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(
        JobToken.SETTING,
        TlsSettings.ENABLED,
        TlsSettings.CERTIFICATE,
        TlsSettings.KEY,
        TlsSettings.AUTHORITIES);
  }

  @Override
  public Store open(Request request) {
    HostPort address = HostPort.ofServer(request.url());
    return new TcpStore(
        TcpStoreOptions.of(address.host(), address.port())
            .withServer(request.host())
            .withWorldSize(request.size())
            // The group itself waits for the ranks, and can name those that do not come.
            .withWaitForWorkers(!request.host())
            .withTimeout(request.timeout())
            .withTime(request.time())
            .withToken(request.settings().get(JobToken.SETTING))
            .withTls(TlsSettings.load(request.settings())),
        request.failedAttempts());
  }
}
