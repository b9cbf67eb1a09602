package dev.tutti.spark;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.StoreProvider;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import dev.tutti.tls.TlsSettings;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The store of one rank for one join: the server, on rank 0, and the connection to it.
 *
 * <p>The runtime opens stores through a {@link StoreProvider}, which gets a URL. This object is
 * what the URL stands for, since the server listens before its port is published. The store stays
 * open until the task ends, even if the program closes its group earlier; closing it ends the setup
 * of a group.
 */
final class BarrierStore implements AutoCloseable {
  private record Key(URI url, int rank) {}

  private static final Map<Key, BarrierStore> OPEN = new ConcurrentHashMap<>();

  private final Key key;
  private final @Nullable TcpStoreServer server;
  private @Nullable Store store;
  private boolean closed;

  /**
   * Registers the store under a URL, until it is closed.
   *
   * @param url the URL
   * @param rank this rank
   * @param server the server of this rank; null on all ranks but one
   */
  BarrierStore(URI url, int rank, @Nullable TcpStoreServer server) {
    this.key = new Key(url, rank);
    this.server = server;
    OPEN.put(key, this);
  }

  /**
   * Starts a server on all addresses of the host, since the address that Spark has for an executor
   * need not be one of the host's own.
   *
   * @param settings the settings, which hold the token and say whether to encrypt
   */
  static TcpStoreServer serve(Settings settings) {
    return new TcpStoreServer(null, 0, settings.get(JobToken.SETTING), TlsSettings.load(settings));
  }

  /** Returns the settings that this store reads. */
  static List<Setting<?>> settings() {
    return List.of(
        JobToken.SETTING,
        TlsSettings.ENABLED,
        TlsSettings.CERTIFICATE,
        TlsSettings.KEY,
        TlsSettings.AUTHORITIES);
  }

  /**
   * Finds the store for a URL.
   *
   * @throws RendezvousException if this process has none
   */
  static BarrierStore find(URI url, int rank) {
    BarrierStore found = OPEN.get(new Key(url, rank));
    if (found == null) {
      throw new RendezvousException(
          BarrierStoreProvider.SCHEME + " is reserved for SparkWorld, which did not create " + url);
    }
    return found;
  }

  /** Connects, and returns the part of the store that belongs to this join. */
  Store open(StoreProvider.Request request) {
    HostPort address = HostPort.ofServer(key.url());
    Store opened =
        new TcpStore(
            TcpStoreOptions.of(server == null ? address.host() : "127.0.0.1", address.port())
                .withWorldSize(request.size())
                // The group waits for the ranks itself, and can name those that do not come.
                .withWaitForWorkers(false)
                .withTimeout(request.timeout())
                .withToken(request.settings().get(JobToken.SETTING))
                .withTls(TlsSettings.load(request.settings())));
    synchronized (this) {
      if (!closed) {
        store = opened;
        return new PrefixStore(key.url().getPath().substring(1), opened);
      }
    }
    opened.close();
    throw new RendezvousException("the task was killed while it joined " + key.url());
  }

  /** Ends all calls of the store; further calls do nothing. */
  @Override
  public void close() {
    Store opened;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      opened = store;
    }
    OPEN.remove(key, this);
    if (opened != null) {
      opened.close();
    }
    if (server != null) {
      server.close();
    }
  }
}
