package dev.tutti.store;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.spi.StoreProvider;
import java.net.URI;

/** Opens a {@link TcpStore} for {@code tcp://host:port}; the host rank serves it too. */
public final class TcpStoreProvider implements StoreProvider {
  /** Creates the provider; the service loader does. */
  public TcpStoreProvider() {}

  @Override
  public String scheme() {
    return "tcp";
  }

  @Override
  public Store open(Request request) {
    URI url = request.url();
    String host = url.getHost();
    if (host == null || host.isEmpty()) {
      throw new RendezvousException("the host is missing in " + url);
    }
    if (url.getPort() < 0) {
      throw new RendezvousException("the port number is missing in " + url);
    }
    String plain = host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
    return new TcpStore(
        TcpStoreOptions.of(plain, url.getPort())
            .withServer(request.host())
            .withWorldSize(request.size())
            .withWaitForWorkers(true)
            .withTimeout(request.timeout()));
  }
}
