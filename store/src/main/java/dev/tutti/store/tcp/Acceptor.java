package dev.tutti.store.tcp;

import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.table.ServerMemory;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * Accepts the clients of a store server; pauses when this fails, as it does without descriptors.
 */
final class Acceptor {
  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());
  private static final int ACCEPTED_AT_ONCE = 256;
  private static final long SHORTEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final ServerSocketChannel listener;
  private final Selector selector;
  private final SelectionKey key;
  private final int port;
  private final JobToken token;
  private final @Nullable SSLContext tls;
  private final ServerMemory memory;
  private final ServerClients clients;
  private final LimitedLog log;
  private final Time time;
  private boolean paused;
  private long pause;
  private long pausedAt;
  private boolean needsRoom;

  /** Registers the listener with the selector of the loop. */
  Acceptor(
      ServerSocketChannel listener,
      Selector selector,
      int port,
      JobToken token,
      @Nullable SSLContext tls,
      ServerMemory memory,
      ServerClients clients,
      LimitedLog log,
      Time time)
      throws IOException {
    this.listener = listener;
    this.selector = selector;
    this.port = port;
    this.token = token;
    this.tls = tls;
    this.memory = memory;
    this.clients = clients;
    this.log = log;
    this.time = time;
    listener.configureBlocking(false);
    this.key = listener.register(selector, SelectionKey.OP_ACCEPT);
  }

  /** Accepts the clients that have come, but not more than a few hundred at once. */
  void accept() {
    try {
      int count = 0;
      for (SocketChannel channel = listener.accept();
          channel != null;
          channel = ++count < ACCEPTED_AT_ONCE ? listener.accept() : null) {
        pause = 0;
        add(channel);
      }
    } catch (IOException e) {
      pause(e);
    }
  }

  private void pause(IOException cause) {
    key.interestOps(0);
    paused = true;
    pausedAt = time.nanoTime();
    pause = Math.clamp(2 * pause, SHORTEST_PAUSE_NANOS, LONGEST_PAUSE_NANOS);
    log.warn(
        "cannot accept clients",
        "",
        "store server on port %d cannot accept clients and will try again: %s"
            .formatted(port, cause));
    needsRoom = true;
  }

  private void add(SocketChannel channel) {
    ServerMemory.Client account = memory.client();
    boolean added = false;
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      KeepAlive.set(channel);
      SelectionKey own = channel.register(selector, SelectionKey.OP_READ);
      SSLContext context = tls;
      TlsChannel secured =
          context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, false));
      clients.add(new ServerConnection(channel, secured, own, token, account, time));
      added = true;
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client disconnected before it was served", e);
    } finally {
      if (!added) {
        account.close();
        ServerClients.closeQuietly(channel);
      }
    }
    if (added && memory.isFull()) {
      clients.refuseEldestStranger("too many", memory.fullMessage());
    }
  }

  boolean isPaused() {
    return paused;
  }

  /** Ends a pause that is over, and makes room for new clients after accepting has failed. */
  void tick() {
    if (paused && time.nanoTime() - pausedAt >= pause) {
      paused = false;
      key.interestOps(SelectionKey.OP_ACCEPT);
    }
    if (needsRoom) {
      needsRoom = false;
      clients.refuseSilent(
          LONGEST_PAUSE_NANOS,
          "it has not identified itself, and other clients cannot be accepted");
    }
  }

  /** Frees the port. */
  void close() {
    ServerClients.closeQuietly(listener);
  }
}
