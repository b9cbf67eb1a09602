package dev.tutti.store;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.spi.StoreProvider;
import java.net.URI;
import java.util.regex.Pattern;

/** Opens a {@link TcpStore} for {@code tcp://host:port}; the host rank serves it too. */
public final class TcpStoreProvider implements StoreProvider {
  private static final Pattern PORT = Pattern.compile("\\d{1,5}");

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
      throw new RendezvousException(complaint(url));
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

  /** Says what is wrong with a URL in which Java finds no host. */
  private static String complaint(URI url) {
    String authority = url.getRawAuthority();
    int colon = authority == null ? -1 : authority.lastIndexOf(':');
    if (authority == null || colon == 0 || authority.isEmpty()) {
      return "the host is missing in " + url;
    }
    String port = authority.substring(colon + 1);
    return colon > 0 && !PORT.matcher(port).matches()
        ? "the port must be a number from 1 to 65535, not '" + port + "', in " + url
        : "'" + (colon > 0 ? authority.substring(0, colon) : authority) + "' is no host, in " + url;
  }
}
