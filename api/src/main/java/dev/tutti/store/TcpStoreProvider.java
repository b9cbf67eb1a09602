package dev.tutti.store;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Store;
import dev.tutti.internal.HostPort;
import dev.tutti.spi.StoreProvider;
import java.net.URI;
import java.util.List;

/** Opens a {@link TcpStore} for {@code tcp://host:port}; the host rank serves it too. */
public final class TcpStoreProvider implements StoreProvider {
  /** Creates the provider; the service loader does. */
  public TcpStoreProvider() {}

  @Override
  public String scheme() {
    return "tcp";
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(JobToken.SETTING);
  }

  @Override
  public Store open(Request request) {
    HostPort address = address(request.url());
    return new TcpStore(
        TcpStoreOptions.of(address.host(), address.port())
            .withServer(request.host())
            .withWorldSize(request.size())
            .withWaitForWorkers(true)
            .withTimeout(request.timeout())
            .withToken(request.settings().get(JobToken.SETTING)));
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
