package dev.tutti.aeron;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.session.RemoteStore;
import dev.tutti.aeron.session.Session;
import dev.tutti.aeron.session.SessionOpener;
import dev.tutti.aeron.session.Sessions;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.spi.Time;
import org.jspecify.annotations.Nullable;

/**
 * A client of a store server over Aeron: through shared memory on the server's host, and over UDP
 * from other hosts.
 *
 * <p>Calls run on the caller's thread and take one round trip each; the server ends a wait as soon
 * as its condition is met. {@link #multiSet} and {@link #multiGet} are atomic; one call takes at
 * most 256 MiB. All stores of a process for the same server share one session, and no call stalls
 * another. The keys live as long as the server's process: when it ends, every call fails at once,
 * or within the lease if its host is lost.
 */
public final class AeronStore extends RemoteStore {
  private final AeronStoreOptions options;
  private final Session link;
  private final @Nullable AeronStoreServer server;

  /**
   * Connects to a server, after starting it if this process serves; retries with growing pauses
   * until the deadline.
   *
   * @param options the options
   * @throws StoreConnectionException if the port to serve on is in use, or no server is reached by
   *     the deadline
   * @throws StoreTokenException if this process and the server do not have the same token
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronStore(AeronStoreOptions options) {
    this(options, AeronStoreServer.DEFAULT_CLIENTS);
  }

  /**
   * Connects to a server; if this process serves, shared memory must have room for the given number
   * of clients.
   */
  AeronStore(AeronStoreOptions options, int clients) {
    this(open(options, clients));
  }

  /**
   * Connects to a server with the settings from the environment.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   */
  public AeronStore(String host, int port) {
    this(AeronStoreOptions.of(host, port));
  }

  private AeronStore(Opened opened) {
    super(opened.link, opened.options.timeout(), Time.SYSTEM);
    this.options = opened.options;
    this.link = opened.link;
    this.server = opened.server;
  }

  private record Opened(
      AeronStoreOptions options, Session link, @Nullable AeronStoreServer server) {}

  private static Opened open(AeronStoreOptions options, int clients) {
    AeronStoreServer server =
        options.server() ? new AeronStoreServer(options, null, clients) : null;
    AeronStoreOptions client = server == null ? options : options.ofClient(server.port());
    try {
      JvmFlags.require();
      return new Opened(client, link(client), server);
    } catch (RuntimeException | Error e) {
      if (server != null) {
        server.close();
      }
      throw e;
    }
  }

  private static Session link(AeronStoreOptions options) {
    String where = options.host() + ":" + options.port();
    ConnectOptions connect = options.connect();
    return Sessions.SERVERS.take(
        where,
        connect,
        options.timeout(),
        deadline ->
            new SessionOpener(options.host(), options.port(), options.timeout(), connect, deadline)
                .open());
  }

  /** Returns the port of the server. */
  public int port() {
    return options.port();
  }

  /** Returns whether calls go through shared memory. */
  public boolean isShared() {
    return link.isShared();
  }

  /**
   * Returns whether a thread of this process sleeps in the bell itself, where the server wakes it
   * directly.
   */
  boolean isInBell() {
    return link.isInBell();
  }

  /** Returns the folder of the driver that this store uses. */
  String driver() {
    return link.driver();
  }

  @Override
  public AeronStore duplicate() {
    retainLink();
    return new AeronStore(new Opened(options, link, null));
  }

  /** Closes this handle, and the server if this store started it. */
  @Override
  public void close() {
    super.close();
    if (server != null) {
      server.close();
    }
  }

  @Override
  public String toString() {
    return "AeronStore[" + link.server() + (isShared() ? ", shared memory]" : ", UDP]");
  }
}
