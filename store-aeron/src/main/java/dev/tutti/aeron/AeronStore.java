package dev.tutti.aeron;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.session.Session;
import dev.tutti.aeron.session.SessionOpener;
import dev.tutti.aeron.session.Sessions;
import dev.tutti.aeron.wire.ConnectOptions;
import org.jspecify.annotations.Nullable;

/**
 * Talks to a store server over Aeron: through shared memory on the server's host, over UDP from
 * others.
 *
 * <p>Calls run on the caller's thread and take one round trip each; waits are ended by the server
 * the moment when what they wait for is there. {@link #multiSet} and {@link #multiGet} take effect
 * at one instant; one call takes at most 256 MiB. All stores of a process for one server share one
 * session, and no call stalls another. The keys live as long as the server's process: when that
 * ends, each call fails at once, and within the lease if its host is lost.
 */
public final class AeronStore extends RemoteStore {
  private final AeronStoreOptions options;
  private final Session link;
  private final @Nullable AeronStoreServer server;

  /**
   * Connects to a server, after starting it if this process serves; tries again with growing pauses
   * until the deadline.
   *
   * @param options where and how
   * @throws StoreConnectionException if the port to serve on is in use, or there is no server by
   *     the deadline
   * @throws StoreTokenException if this process and the server do not have the same token
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronStore(AeronStoreOptions options) {
    this(options, AeronStoreServer.DEFAULT_CLIENTS);
  }

  /** Connects to a server; if this process serves, there must be room for so many clients. */
  AeronStore(AeronStoreOptions options, int clients) {
    this(open(options, clients));
  }

  /**
   * Connects to a server with the settings of the environment.
   *
   * @param host name or address of the host that serves
   * @param port the port
   */
  public AeronStore(String host, int port) {
    this(AeronStoreOptions.of(host, port));
  }

  private AeronStore(Opened opened) {
    super(opened.link, opened.options.timeout());
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

  /** Tells whether calls go through shared memory. */
  public boolean isShared() {
    return link.isShared();
  }

  /** Tells whether calls sleep until the server rings. */
  boolean sleeps() {
    return link.sleeps();
  }

  /** Tells whether a thread of this process sleeps where the server itself wakes it. */
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
