package dev.tutti.store.tcp;

import dev.tutti.spi.NanoClock;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The clients of a store server, and how it drops them. */
final class ServerClients {
  /*
   * A client is dropped if none of its replies moves for a while, or if it does not prove the token,
   * or speak the protocol, for that long. The clients are linked to each other, so that they can be
   * walked without allocating memory.
   */
  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());

  private final int port;
  private final JobToken token;
  private final long limitNanos;
  private final long limitSeconds;
  private final String unproven;
  private final AwaitedClients awaited;
  private final Refusals refusals;
  private final LimitedLog log;
  private final NanoClock clock;
  private @Nullable ServerConnection newest;

  /**
   * Creates an empty list.
   *
   * @param encrypts whether TLS encrypts the connections
   * @param limitNanos for how long a client may show nothing, or read none of its replies
   */
  ServerClients(
      int port,
      JobToken token,
      boolean encrypts,
      long limitNanos,
      AwaitedClients awaited,
      Refusals refusals,
      LimitedLog log,
      NanoClock clock) {
    this.port = port;
    this.token = token;
    this.limitNanos = limitNanos;
    this.limitSeconds = TimeUnit.NANOSECONDS.toSeconds(limitNanos);
    String what = token.isSet() ? "proved that it has this server's token" : "sent a valid request";
    String proof = encrypts ? "completed the TLS handshake and " + what : what;
    this.unproven = "it has not %s within %d s".formatted(proof, limitSeconds);
    this.awaited = awaited;
    this.refusals = refusals;
    this.log = log;
    this.clock = clock;
  }

  void add(ServerConnection client) {
    awaited.addStranger(client);
    client.key.attach(client);
    ServerConnection before = newest;
    client.older = before;
    if (before != null) {
      before.newer = client;
    }
    newest = client;
  }

  private void unlink(ServerConnection client) {
    ServerConnection before = client.older;
    ServerConnection after = client.newer;
    if (before != null) {
      before.newer = after;
    }
    if (after != null) {
      after.older = before;
    } else {
      newest = before;
    }
  }

  /** Returns the client that is dropped first if memory runs short; null if there is none. */
  @Nullable ServerConnection heaviest() {
    long now = clock.nanoTime();
    ServerConnection most = null;
    long weight = -1;
    for (ServerConnection client = newest; client != null; client = client.older) {
      long other = client.memory.weight(now);
      if (other > weight) {
        most = client;
        weight = other;
      }
    }
    return most;
  }

  /** Drops the client that came first among those that have shown nothing. */
  void refuseEldestStranger(String cause, String reason) {
    ServerConnection eldest = awaited.eldestStranger();
    if (eldest != null) {
      refuse(eldest, cause, reason);
    }
  }

  /** Drops the clients that have shown nothing for longer than a limit. */
  void refuseSilent(long nanos, String reason) {
    for (ServerConnection client = awaited.silentStranger(nanos);
        client != null;
        client = awaited.silentStranger(nanos)) {
      refuse(client, "silent", reason);
    }
  }

  /** Drops the clients that have not shown in time what they are. */
  void refuseStrangers() {
    refuseSilent(limitNanos, unproven);
  }

  /** Drops the clients that have not read their replies in time. */
  void refuseStuck() {
    for (ServerConnection client = awaited.stuckClient(limitNanos);
        client != null;
        client = awaited.stuckClient(limitNanos)) {
      refuse(
          client,
          "stuck",
          "it has not read its replies for %d s; %d bytes are pending"
              .formatted(limitSeconds, client.replies.pending()));
    }
  }

  /** Drops a client after sending it what it still takes, and logs why. */
  void refuse(ServerConnection client, String cause, @Nullable String reason) {
    if (client.closed) {
      return;
    }
    try {
      client.replies.flush(client.wire);
      if (client.tls != null) {
        client.tls.close();
      }
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      LOG.log(Level.DEBUG, "cannot send the last replies to a dropped client", e);
    }
    close(client);
    warn(client, cause, String.valueOf(reason));
  }

  /** Keeps and logs why a client was dropped; causes that anybody can provoke are rate-limited. */
  void warn(ServerConnection client, String cause, String reason) {
    refusals.add(client.name, reason);
    String line =
        "store server on port %d drops client %s: %s".formatted(port, client.peer, reason);
    if (token.isSet() && client.gate.isOpen()) {
      log.warn(line);
    } else {
      log.warn(cause, client.address, line);
    }
  }

  void close(ServerConnection client) {
    if (!client.closed) {
      client.closed = true;
      unlink(client);
      client.key.attach(null);
      client.key.cancel();
      closeQuietly(client.channel);
      client.memory.close();
      awaited.remove(client);
      client.cancelWaits();
    }
  }

  /** Closes the clients that wait for something. */
  void closeWaiting() {
    ServerConnection next;
    for (ServerConnection client = newest; client != null; client = next) {
      next = client.older;
      if (!client.cancels.isEmpty()) {
        close(client);
      }
    }
  }

  /** Closes the connections of all clients for good; allocates no memory. */
  void closeChannels() {
    for (ServerConnection client = newest; client != null; client = client.older) {
      closeQuietly(client.channel);
    }
  }

  static void closeQuietly(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception | OutOfMemoryError e) {
      LOG.log(Level.DEBUG, "closing", e);
    }
  }
}
