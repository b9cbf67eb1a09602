package dev.tutti.store;

import dev.tutti.StoreException;
import dev.tutti.internal.HostPort;
import dev.tutti.store.internal.YieldingWait;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** Serves all clients of a store server on one thread. */
final class ServerLoop implements Runnable {
  /*
   * One thread owns everything here, so nothing is locked. What has come from the clients that are
   * ready is handled as far as it goes, then each client's replies leave in one write.
   *
   * Requests without replies, as of clients that only set, are not urgent: the loop looks again a moment
   * later. Who reads each of them as it comes holds up the client that sends the next one, since both
   * need the lock of the same socket.
   *
   * A client that does not read its replies is not read from either once HIGH_WATER bytes wait for it,
   * and is dropped when none of them moves for a while. Its unread requests stay in its socket. Who does
   * not prove the token for as long is dropped too.
   */
  static final long HIGH_WATER = 1 << 20;

  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());
  private static final int BUFFER_BYTES = 128 * 1024;
  private static final long TICK_MILLIS = 100;
  private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(TICK_MILLIS);

  private final Selector selector;
  private final ServerSocketChannel listener;
  private final SelectionKey acceptKey;
  private final int port;
  private final JobToken token;
  private final long stuckNanos;
  private final ServerCommands commands;
  private final ByteBuffer buffer =
      ByteBuffer.allocate(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final ArrayDeque<ServerConnection> touched = new ArrayDeque<>();
  private final Set<ServerConnection> stuck = new HashSet<>();
  private final Consumer<SelectionKey> handler = this::handle;
  private final YieldingWait pause = new YieldingWait();
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final Set<ServerConnection> strangers = new HashSet<>();
  private long strangersSeenAt;
  private boolean acceptPaused;
  private long acceptPausedAt;
  private volatile boolean stopped;

  ServerLoop(
      ServerSocketChannel listener,
      int port,
      JobToken token,
      String instance,
      long stuckNanos,
      LongConsumer joined)
      throws IOException {
    this.listener = listener;
    this.port = port;
    this.token = token;
    this.stuckNanos = stuckNanos;
    this.selector = Selector.open();
    this.commands = new ServerCommands(instance, this::touch, joined);
    try {
      listener.configureBlocking(false);
      acceptKey = listener.register(selector, SelectionKey.OP_ACCEPT);
    } catch (IOException e) {
      selector.close();
      throw e;
    }
  }

  /** Has the loop run something between requests; called from any thread. */
  void execute(Consumer<ServerCommands> task) {
    tasks.add(() -> task.accept(commands));
    selector.wakeup();
  }

  /** Ends the loop; called from any thread. */
  void stop() {
    stopped = true;
    selector.wakeup();
  }

  @Override
  public void run() {
    try {
      while (!stopped) {
        if (!selectAwake()) {
          boolean ticks = acceptPaused || !stuck.isEmpty() || !strangers.isEmpty();
          selector.select(handler, ticks ? TICK_MILLIS : 0);
        }
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
          task.run();
        }
        boolean quiet = touched.isEmpty();
        flushTouched();
        tick();
        if (quiet) {
          pause.rest();
        }
      }
    } catch (IOException | RuntimeException | Error e) {
      LOG.log(Level.ERROR, "store server on port " + port + " ends: " + e, e);
    } finally {
      for (SelectionKey key : List.copyOf(selector.keys())) {
        closeQuietly(key.channel());
      }
      closeQuietly(selector);
    }
  }

  /** Handles what comes soon; returns false if the loop is to sleep until something comes. */
  private boolean selectAwake() throws IOException {
    pause.start();
    do {
      // A stop or a task is seen here if its wake-up was taken by this select.
      if (selector.selectNow(handler) > 0 || stopped || !tasks.isEmpty()) {
        return true;
      }
    } while (pause.yields());
    return false;
  }

  private void handle(SelectionKey key) {
    if (!(key.attachment() instanceof ServerConnection client)) {
      accept();
      return;
    }
    if (client.closed) {
      return;
    }
    guarded(
        client,
        () -> {
          if (key.isWritable()) {
            touch(client);
          }
          if (key.isReadable()) {
            read(client);
          }
        });
  }

  private void flushTouched() {
    for (ServerConnection next = touched.poll(); next != null; next = touched.poll()) {
      ServerConnection waiting = next;
      waiting.touched = false;
      guarded(waiting, () -> flush(waiting));
    }
  }

  private void guarded(ServerConnection client, Step step) {
    if (client.closed) {
      return;
    }
    try {
      step.run();
    } catch (ProtocolException | StoreException e) {
      refuse(client, e.getMessage());
    } catch (IOException e) {
      close(client);
    } catch (RuntimeException | OutOfMemoryError e) {
      LOG.log(Level.WARNING, "store server on port %d: %s".formatted(port, e), e);
      refuse(client, e.toString());
    }
  }

  private void accept() {
    try {
      for (SocketChannel channel = listener.accept();
          channel != null;
          channel = listener.accept()) {
        add(channel);
      }
    } catch (IOException e) {
      LOG.log(
          Level.WARNING,
          "store server on port %d cannot accept clients, tries again: %s".formatted(port, e));
      acceptKey.interestOps(0);
      acceptPaused = true;
      acceptPausedAt = System.nanoTime();
    }
  }

  private void add(SocketChannel channel) {
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      KeepAlive.set(channel);
      SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
      String peer = HostPort.text(channel.getRemoteAddress());
      ServerConnection client = new ServerConnection(channel, key, peer, token);
      key.attach(client);
      if (!client.gate.isOpen()) {
        strangers.add(client);
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client left before it was served", e);
      closeQuietly(channel);
    }
  }

  private void read(ServerConnection client) throws IOException {
    buffer.clear();
    buffer.put(client.held);
    int read = client.channel.read(buffer);
    buffer.flip();
    if (read < 0) {
      client.ended = true;
      client.cancelWaits();
      touch(client);
    }
    process(client, buffer);
  }

  private void process(ServerConnection client, ByteBuffer in) throws ProtocolException {
    boolean more = true;
    while (more && client.replies.pending() < HIGH_WATER) {
      more = client.requests.next(in);
      if (more) {
        commands.run(client, client.requests);
      }
    }
    client.paused = more;
    client.hold(in);
  }

  private void touch(ServerConnection client) {
    if (!client.touched) {
      client.touched = true;
      touched.add(client);
    }
  }

  private void flush(ServerConnection client) throws IOException {
    long sent = client.replies.flush(client.channel);
    while (client.paused && client.replies.pending() < HIGH_WATER) {
      process(client, client.held);
      sent += client.replies.flush(client.channel);
    }
    boolean done = client.replies.pending() == 0;
    if (done && client.ended) {
      close(client);
      return;
    }
    if (done && client.stuckSince != 0) {
      client.stuckSince = 0;
      stuck.remove(client);
    } else if (!done && (sent > 0 || client.stuckSince == 0)) {
      client.stuckSince = System.nanoTime() | 1;
      stuck.add(client);
    }
    int read = client.ended || client.replies.pending() >= HIGH_WATER ? 0 : SelectionKey.OP_READ;
    int write = done ? 0 : SelectionKey.OP_WRITE;
    if (client.key.interestOps() != (read | write)) {
      client.key.interestOps(read | write);
    }
  }

  private void tick() {
    if (acceptPaused && System.nanoTime() - acceptPausedAt >= TICK_NANOS) {
      acceptPaused = false;
      acceptKey.interestOps(SelectionKey.OP_ACCEPT);
    }
    dropStrangers();
    if (stuck.isEmpty()) {
      return;
    }
    long now = System.nanoTime();
    for (ServerConnection client : List.copyOf(stuck)) {
      if (now - client.stuckSince > stuckNanos) {
        refuse(
            client,
            "it has not read its replies for %d s, %d bytes wait"
                .formatted(TimeUnit.NANOSECONDS.toSeconds(stuckNanos), client.replies.pending()));
      }
    }
  }

  private void dropStrangers() {
    long now = strangers.isEmpty() ? 0 : System.nanoTime();
    if (strangers.isEmpty() || now - strangersSeenAt < TICK_NANOS) {
      return;
    }
    strangersSeenAt = now;
    strangers.removeIf(client -> client.gate.isOpen());
    for (ServerConnection client : List.copyOf(strangers)) {
      if (now - client.cameAt > stuckNanos) {
        refuse(
            client,
            "it has not proved the token of this server for %d s"
                .formatted(TimeUnit.NANOSECONDS.toSeconds(stuckNanos)));
      }
    }
  }

  private void refuse(ServerConnection client, @Nullable String reason) {
    LOG.log(
        Level.WARNING,
        "store server on port %d drops client %s: %s".formatted(port, client.peer, reason));
    try {
      client.replies.flush(client.channel);
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      LOG.log(Level.DEBUG, "a client that is dropped does not take its last replies", e);
    }
    close(client);
  }

  private void close(ServerConnection client) {
    if (!client.closed) {
      client.closed = true;
      client.cancelWaits();
      stuck.remove(client);
      strangers.remove(client);
      client.key.cancel();
      closeQuietly(client.channel);
    }
  }

  private static void closeQuietly(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "closing", e);
    }
  }

  /** Is a part of the work for one client; what it throws ends that client only. */
  private interface Step {
    void run() throws IOException;
  }
}
