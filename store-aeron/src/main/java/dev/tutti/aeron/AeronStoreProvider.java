package dev.tutti.aeron;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.internal.HostPort;
import dev.tutti.spi.StoreProvider;
import dev.tutti.store.JobToken;
import java.net.URI;
import java.util.List;
import java.util.Optional;

/** Opens an {@link AeronStore} for {@code aeron://host:port}; the host rank serves it too. */
public final class AeronStoreProvider implements StoreProvider {
  /** Creates the provider; the service loader does. */
  public AeronStoreProvider() {}

  @Override
  public String scheme() {
    return "aeron";
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return JvmFlags.missing();
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(
        AeronStoreOptions.TRANSPORT,
        AeronStoreOptions.DIRECTORY,
        AeronStoreOptions.LEASE,
        AeronStoreOptions.SPIN,
        JobToken.SETTING);
  }

  @Override
  public Store open(Request request) {
    HostPort address = address(request.url());
    return new AeronStore(
        AeronStoreOptions.of(address.host(), address.port(), request.settings())
            .withServer(request.host())
            .withTimeout(request.timeout()));
  }

  private static HostPort address(URI url) {
    String authority = url.getRawAuthority();
    try {
      HostPort address = HostPort.parse(authority == null ? "" : authority);
      if (address.port() >= 0) {
        return address;
      }
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(e.getMessage() + ", in " + url, e);
    }
    throw new RendezvousException("the port number is missing in " + url);
  }
}
