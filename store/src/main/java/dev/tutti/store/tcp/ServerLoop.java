package dev.tutti.store.tcp;

import dev.tutti.StoreException;
import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.table.ServerMemory;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.util.ArrayDeque;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** Serves all clients of a store server on one thread. */
final class ServerLoop implements Runnable {
  /*
   * One thread owns everything here, so there are no locks. The input of all ready clients is
   * processed as far as possible, then each client's replies are sent in one write.
   *
   * Requests without replies, such as those of clients that only set keys, are not urgent: the loop
   * looks for them again a moment later. A server that read each of them as it came would hold up
   * the client that sends the next one, since both need the lock of the same socket.
   *
   * A client that does not read its replies is no longer read from once HIGH_WATER bytes wait for
   * it. Its unread requests stay in its socket.
   *
   * The handshakes of TLS take time, and anybody can start one. Their steps wait in a queue, of
   * which each turn takes a few, after it has read the requests of other clients.
   *
   * If memory runs out, clients are dropped (MemoryRelief). Any other failure ends the server: first
   * the port is closed, then the keys are dropped, then all clients; logging comes last.
   */
  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());
  private static final long HIGH_WATER = 1 << 20;
  private static final int BUFFER_BYTES = 128 * 1024;
  private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long REST_NANOS = 20_000;
  private static final int HANDSHAKES_AT_ONCE = 2;

  private final Selector selector;
  private final int port;
  private final Time time;
  private final LimitedLog log;
  private final AwaitedClients awaited;
  private final ServerClients clients;
  private final MemoryRelief relief;
  private final Acceptor acceptor;
  private final Runnable whenEnded;
  private @Nullable ServerCommands commands;
  private final ByteBuffer buffer =
      ByteBuffer.allocate(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final ArrayDeque<ServerConnection> touched = new ArrayDeque<>();
  private final ArrayDeque<ServerConnection> buffered = new ArrayDeque<>();
  private final ArrayDeque<ServerConnection> handshaking = new ArrayDeque<>();
  private final Consumer<SelectionKey> handler = this::handle;
  private final Step serving = this::serve;
  private final Step securing = this::secure;
  private final Step readingMore = this::readMore;
  private final Step flushing = this::flush;
  private final BusyCores cores = BusyCores.ofStore();
  private final WaitStrategy wait;
  private final WaitStrategy pause;
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private volatile boolean stopped;
  private volatile boolean ended;

  ServerLoop(
      ServerSocketChannel listener,
      int port,
      JobToken token,
      @Nullable SSLContext tls,
      String instance,
      long stuckNanos,
      Time time,
      LongConsumer joined,
      Runnable whenEnded)
      throws IOException {
    this.port = port;
    this.whenEnded = whenEnded;
    this.time = time;
    this.log = new LimitedLog(LOG, time);
    this.awaited = new AwaitedClients(time);
    this.wait = WaitStrategy.yielding(WaitStrategy.AWAKE_NANOS, cores, time);
    this.pause = WaitStrategy.yielding(REST_NANOS, cores, time);
    Refusals refusals = new Refusals();
    ServerMemory memory = new ServerMemory(tls != null, time);
    this.clients =
        new ServerClients(port, token, tls != null, stuckNanos, awaited, refusals, log, time);
    this.relief = new MemoryRelief(memory, clients);
    this.selector = listener.provider().openSelector();
    this.commands = new ServerCommands(instance, refusals, this::touch, joined, memory.table());
    try {
      acceptor = new Acceptor(listener, selector, port, token, tls, memory, clients, log, time);
    } catch (IOException e) {
      selector.close();
      throw e;
    }
    loadWaits();
  }

  /**
   * Loads the classes that a wait uses: clients may come before the first wait and leave no
   * descriptor to open a class file with.
   */
  private void loadWaits() {
    pause.start();
    pause.staysAwake();
  }

  /** Makes the loop run a task between requests; may be called from any thread. */
  void execute(Consumer<ServerCommands> task) {
    tasks.add(() -> task.accept(commands()));
    selector.wakeup();
  }

  private ServerCommands commands() {
    return Objects.requireNonNull(commands);
  }

  /** Returns whether the loop has stopped serving. */
  boolean hasEnded() {
    return ended;
  }

  /** Ends the loop; may be called from any thread. */
  void stop() {
    stopped = true;
    selector.wakeup();
  }

  @Override
  public void run() {
    Throwable failure = null;
    try {
      while (!stopped) {
        turnOrRelieve();
      }
    } catch (IOException | RuntimeException | Error e) {
      failure = e;
    } finally {
      end(failure);
    }
  }

  private void turnOrRelieve() throws IOException {
    try {
      turn();
      relief.turned();
    } catch (OutOfMemoryError e) {
      relief.outOfMemory(e);
    }
  }

  private void turn() throws IOException {
    awaited.look();
    if (!selectAwake()) {
      boolean ticks = acceptor.isPaused() || !awaited.isEmpty() || log.hasUntold();
      int _ = time.select(selector, handler, ticks ? TICK_NANOS : Long.MAX_VALUE);
    }
    readBuffered();
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
    }
    boolean quiet = touched.isEmpty() && buffered.isEmpty() && handshaking.isEmpty();
    flushTouched();
    if (!handshaking.isEmpty()) {
      secureSome();
      flushTouched();
    }
    tick();
    if (quiet) {
      pause.start();
      boolean rests = true;
      while (rests) {
        rests = pause.staysAwake();
      }
    }
  }

  /** Ends for good; steps that need memory come last. */
  private void end(@Nullable Throwable failure) {
    ended = true;
    acceptor.close();
    commands = null;
    touched.clear();
    buffered.clear();
    handshaking.clear();
    clients.closeChannels();
    ServerClients.closeQuietly(selector);
    whenEnded.run();
    if (failure != null) {
      LOG.log(Level.ERROR, "store server on port " + port + " stopped: " + failure, failure);
    }
    log.close();
  }

  /** Handles events that come soon; returns false if the loop is to sleep until an event comes. */
  private boolean selectAwake() throws IOException {
    wait.start();
    do {
      // Detects a stop or a task whose wake-up was consumed by this select.
      boolean waiting = !tasks.isEmpty() || !buffered.isEmpty() || !handshaking.isEmpty();
      if (selector.selectNow(handler) > 0 || stopped || waiting) {
        return true;
      }
    } while (wait.staysAwake());
    return false;
  }

  private void handle(SelectionKey key) {
    if (key.attachment() instanceof ServerConnection client) {
      guarded(client, serving);
    } else {
      acceptor.accept();
    }
  }

  /** Does what the socket of a client is ready for. */
  private void serve(ServerConnection client) throws IOException {
    if (!client.secured) {
      if (!client.queued) {
        handshaking.add(client);
        client.queued = true;
      }
      return;
    }
    if (client.key.isWritable()) {
      touch(client);
    }
    if (client.key.isReadable() || client.hasBuffered()) {
      read(client);
    }
  }

  private void flushTouched() {
    for (ServerConnection next = touched.poll(); next != null; next = touched.poll()) {
      next.touched = false;
      guarded(next, flushing);
    }
  }

  private void guarded(ServerConnection client, Step step) {
    if (client.closed) {
      return;
    }
    try {
      step.run(client);
      relief.relieve();
    } catch (ProtocolException | StoreException e) {
      clients.refuse(client, "bad request", e.getMessage());
    } catch (SSLException e) {
      clients.refuse(client, "TLS", TlsRefusedException.ofServer(e));
    } catch (IOException e) {
      clients.close(client);
    } catch (OutOfMemoryError e) {
      relief.outOfMemory(client, e);
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "the request of a client failed", e);
      clients.refuse(client, "failure", e.toString());
    }
  }

  /** Continues to read from clients whose turn ended while TLS still had input for them. */
  private void readBuffered() {
    for (int left = buffered.size(); left > 0; left--) {
      ServerConnection next = buffered.remove();
      next.queued = false;
      guarded(next, readingMore);
    }
  }

  /** Continues a few handshakes. */
  private void secureSome() {
    for (int left = Math.min(HANDSHAKES_AT_ONCE, handshaking.size()); left > 0; left--) {
      ServerConnection next = handshaking.remove();
      next.queued = false;
      guarded(next, securing);
    }
  }

  private void secure(ServerConnection client) throws IOException {
    if (client.secure()) {
      read(client);
    }
  }

  private void readMore(ServerConnection client) throws IOException {
    if (client.hasBuffered() && !client.paused && !client.ended) {
      read(client);
    }
  }

  /** Reads once, so that a fast sender does not keep others waiting. */
  private void read(ServerConnection client) throws IOException {
    buffer.clear();
    buffer.put(client.held);
    int read = client.wire.read(buffer);
    buffer.flip();
    if (read < 0) {
      client.ended = true;
      client.cancelWaits();
      touch(client);
    }
    process(client, buffer);
    if (client.hasBuffered() && !client.queued) {
      buffered.add(client);
      client.queued = true;
    }
  }

  private void process(ServerConnection client, ByteBuffer in) throws ProtocolException {
    boolean more = true;
    while (more && client.replies.pending() < HIGH_WATER) {
      more = client.requests.next(in);
      if (more) {
        run(client);
        client.requests.done();
      }
    }
    client.paused = more;
    client.hold(in);
  }

  private void run(ServerConnection client) throws ProtocolException {
    try {
      commands().run(client, client.requests);
    } catch (OutOfMemoryError e) {
      relief.changeCutShort();
      throw e;
    }
  }

  private void touch(ServerConnection client) {
    if (!client.touched) {
      touched.add(client);
      client.touched = true;
    }
  }

  private void flush(ServerConnection client) throws IOException {
    if (client.broken instanceof OutOfMemoryError e) {
      relief.outOfMemory(client, e);
      return;
    }
    if (client.broken instanceof StoreException e) {
      throw e;
    }
    long sent = client.replies.flush(client.wire);
    while (client.paused && client.replies.pending() < HIGH_WATER) {
      process(client, client.held);
      readMore(client);
      sent += client.replies.flush(client.wire);
    }
    boolean done = client.replies.pending() == 0 && client.flushTls();
    if (done && client.ended) {
      clients.close(client);
      return;
    }
    awaited.noteReplies(client, done, sent > 0);
    int read = client.ended || client.replies.pending() >= HIGH_WATER ? 0 : SelectionKey.OP_READ;
    int write = done ? 0 : SelectionKey.OP_WRITE;
    if (client.key.interestOps() != (read | write)) {
      client.key.interestOps(read | write);
    }
  }

  private void tick() {
    acceptor.tick();
    clients.refuseStrangers();
    log.tick();
    clients.refuseStuck();
  }

  /** A part of the work for one client; an exception that it throws ends that client only. */
  private interface Step {
    void run(ServerConnection client) throws IOException;
  }
}
