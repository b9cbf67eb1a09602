package dev.tutti.store.tcp;

import dev.tutti.StoreException;
import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.table.ServerMemory;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
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
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.SequencedSet;
import java.util.Set;
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
   * it, and is dropped when none of them moves for a while. Its unread requests stay in its socket.
   * A client that does not prove the token, or speak the protocol, for that long is also dropped.
   *
   * The memory that clients make the server hold is counted (ServerMemory) and limited. If memory
   * runs out all the same, because the program in the same process uses it, a client is dropped,
   * together with what it held, before anything is logged. If a change of the keys was cut short,
   * all waiting clients are dropped, since some of them may have been missed. Any other failure
   * ends the server: first the port is closed, then the keys are dropped, then all clients, whose
   * list can be walked without allocating memory; logging comes last.
   */
  static final long HIGH_WATER = 1 << 20;

  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());
  private static final int BUFFER_BYTES = 128 * 1024;
  private static final long TICK_MILLIS = 100;
  private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(TICK_MILLIS);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long REST_NANOS = 20_000;
  private static final int ACCEPTED_AT_ONCE = 256;
  private static final int MOST_RELIEFS = 64;
  private static final String CANNOT_ACCEPT = "cannot accept clients";

  private final Selector selector;
  private final ServerSocketChannel listener;
  private final SelectionKey acceptKey;
  private final int port;
  private final JobToken token;
  private final @Nullable SSLContext tls;
  private final long stuckNanos;
  private final LimitedLog log = new LimitedLog(LOG);
  private final ServerMemory memory;
  private final Runnable whenEnded;
  private @Nullable ServerCommands commands;
  private @Nullable ServerConnection newest;
  private final ByteBuffer buffer =
      ByteBuffer.allocate(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final ArrayDeque<ServerConnection> touched = new ArrayDeque<>();
  private final ArrayDeque<ServerConnection> buffered = new ArrayDeque<>();
  private final Set<ServerConnection> stuck = new HashSet<>();
  private final Consumer<SelectionKey> handler = this::handle;
  private final BusyCores cores = BusyCores.ofStore();
  private final WaitStrategy wait = WaitStrategy.yielding(WaitStrategy.AWAKE_NANOS, cores);
  private final WaitStrategy pause = WaitStrategy.yielding(REST_NANOS, cores);
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final SequencedSet<ServerConnection> strangers = new LinkedHashSet<>();
  private long strangersSeenAt;
  private long lookedAt;
  private boolean needsRoom;
  private boolean acceptPaused;
  private long acceptPause;
  private long acceptPausedAt;
  private int reliefs;
  private boolean changing;
  private volatile boolean stopped;
  private volatile boolean ended;

  ServerLoop(
      ServerSocketChannel listener,
      int port,
      JobToken token,
      @Nullable SSLContext tls,
      String instance,
      long stuckNanos,
      LongConsumer joined,
      Runnable whenEnded)
      throws IOException {
    this.listener = listener;
    this.port = port;
    this.token = token;
    this.tls = tls;
    this.memory = new ServerMemory(tls != null);
    this.stuckNanos = stuckNanos;
    this.selector = Selector.open();
    this.whenEnded = whenEnded;
    this.commands = new ServerCommands(instance, this::touch, joined, memory.table());
    try {
      listener.configureBlocking(false);
      acceptKey = listener.register(selector, SelectionKey.OP_ACCEPT);
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

  /** Tells whether the loop has stopped serving. */
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
      reliefs = 0;
    } catch (OutOfMemoryError e) {
      ServerConnection most = most();
      if (most == null || ++reliefs > MOST_RELIEFS) {
        throw e;
      }
      outOfMemory(most, e);
    }
  }

  private void turn() throws IOException {
    if (!strangers.isEmpty()) {
      lookedAt = System.nanoTime();
    }
    if (!selectAwake()) {
      boolean ticks = acceptPaused || !stuck.isEmpty() || !strangers.isEmpty() || log.hasUntold();
      selector.select(handler, ticks ? TICK_MILLIS : 0);
    }
    readBuffered();
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
    }
    boolean quiet = touched.isEmpty() && buffered.isEmpty();
    flushTouched();
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
    closeQuietly(listener);
    commands = null;
    touched.clear();
    buffered.clear();
    for (ServerConnection client = newest; client != null; client = client.older) {
      closeQuietly(client.channel);
    }
    closeQuietly(selector);
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
      if (selector.selectNow(handler) > 0 || stopped || !tasks.isEmpty() || !buffered.isEmpty()) {
        return true;
      }
    } while (wait.staysAwake());
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
          if (!client.secured && !secure(client)) {
            return;
          }
          if (key.isWritable()) {
            touch(client);
          }
          if (key.isReadable() || client.hasBuffered()) {
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
      relieve();
    } catch (ProtocolException | StoreException e) {
      refuse(client, "bad request", e.getMessage());
    } catch (SSLException e) {
      refuse(client, "TLS", TlsRefusedException.ofServer(e));
    } catch (IOException e) {
      close(client);
    } catch (OutOfMemoryError e) {
      outOfMemory(client, e);
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "the request of a client failed", e);
      refuse(client, "failure", e.toString());
    }
  }

  /** Drops the clients that hold most while all together hold too much. */
  private void relieve() {
    while (memory.isCrowded()) {
      ServerConnection most = most();
      if (most == null) {
        return;
      }
      refuse(most, "holds most", most.memory.crowdedMessage());
    }
  }

  private @Nullable ServerConnection most() {
    long now = System.nanoTime();
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

  /** Drops a client, and those that a change that was cut short may have missed. */
  private void outOfMemory(ServerConnection client, OutOfMemoryError e) {
    close(client);
    boolean all = changing;
    ServerConnection next;
    for (ServerConnection other = newest; all && other != null; other = next) {
      next = other.older;
      if (!other.cancels.isEmpty()) {
        close(other);
      }
    }
    changing = false;
    warn(
        client,
        "memory",
        e + "; check -Xmx" + (all ? "; all waiting clients are dropped too" : ""));
  }

  private void accept() {
    try {
      int count = 0;
      for (SocketChannel channel = listener.accept();
          channel != null;
          channel = ++count < ACCEPTED_AT_ONCE ? listener.accept() : null) {
        acceptPause = 0;
        add(channel);
      }
    } catch (IOException e) {
      pauseAccepting(e);
    }
  }

  private void pauseAccepting(IOException cause) {
    acceptKey.interestOps(0);
    acceptPaused = true;
    acceptPausedAt = System.nanoTime();
    acceptPause = Math.clamp(2 * acceptPause, TICK_NANOS, LONGEST_PAUSE_NANOS);
    log.warn(
        CANNOT_ACCEPT,
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
      SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
      SSLContext context = tls;
      TlsChannel secured =
          context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, false));
      ServerConnection client = new ServerConnection(channel, secured, key, token, account);
      strangers.add(client);
      key.attach(client);
      link(client);
      added = true;
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client disconnected before it was served", e);
    } finally {
      if (!added) {
        account.close();
        closeQuietly(channel);
      }
    }
    if (added && memory.isFull()) {
      refuse(eldestStranger(), "too many", memory.fullMessage());
    }
  }

  /**
   * Returns the oldest client that has shown nothing; there is one, since the newest client has
   * shown nothing yet.
   */
  private ServerConnection eldestStranger() {
    while (!strangers.getFirst().isStranger()) {
      strangers.removeFirst();
    }
    return strangers.getFirst();
  }

  private void link(ServerConnection client) {
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

  /** Continues the TLS handshake with a client; tells whether it is complete. */
  private static boolean secure(ServerConnection client) throws IOException {
    TlsChannel handshaking = client.tls;
    client.secured = handshaking == null || handshaking.handshake();
    if (!client.secured) {
      boolean unsent = handshaking != null && handshaking.hasUnsent();
      client.key.interestOps(unsent ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    } else {
      client.key.interestOps(SelectionKey.OP_READ);
    }
    return client.secured;
  }

  /** Continues to read from clients whose turn ended while TLS still had input for them. */
  private void readBuffered() {
    for (int left = buffered.size(); left > 0; left--) {
      ServerConnection next = buffered.remove();
      next.queued = false;
      guarded(next, () -> readMore(next));
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
        changing = true;
        commands().run(client, client.requests);
        changing = false;
        client.requests.done();
      }
    }
    client.paused = more;
    client.hold(in);
  }

  private void touch(ServerConnection client) {
    if (!client.touched) {
      touched.add(client);
      client.touched = true;
    }
  }

  private void flush(ServerConnection client) throws IOException {
    if (client.broken instanceof OutOfMemoryError e) {
      outOfMemory(client, e);
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
    if (acceptPaused && System.nanoTime() - acceptPausedAt >= acceptPause) {
      acceptPaused = false;
      acceptKey.interestOps(SelectionKey.OP_ACCEPT);
    }
    if (needsRoom) {
      needsRoom = false;
      dropSilent(
          LONGEST_PAUSE_NANOS,
          "it has not identified itself, and other clients cannot be accepted");
    }
    dropStrangers();
    log.tick();
    if (stuck.isEmpty()) {
      return;
    }
    long now = System.nanoTime();
    for (ServerConnection client : List.copyOf(stuck)) {
      if (now - client.stuckSince > stuckNanos) {
        refuse(
            client,
            "stuck",
            "it has not read its replies for %d s; %d bytes are pending"
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
    long seconds = TimeUnit.NANOSECONDS.toSeconds(stuckNanos);
    String what = token.isSet() ? "proved that it has this server's token" : "sent a valid request";
    String proof = tls == null ? what : "completed the TLS handshake and " + what;
    dropSilent(stuckNanos, "it has not %s within %d s".formatted(proof, seconds));
  }

  /**
   * Drops strangers that connected longer ago than a limit. Their age counts up to the last look
   * for input, because a server that stood still has not read what came in the meantime.
   */
  private void dropSilent(long nanos, String reason) {
    strangers.removeIf(client -> !client.isStranger());
    while (!strangers.isEmpty() && lookedAt - strangers.getFirst().cameAt > nanos) {
      refuse(strangers.getFirst(), "silent", reason);
    }
  }

  private void refuse(ServerConnection client, String cause, @Nullable String reason) {
    changing = false;
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

  /** Logs why a client was dropped; causes that anybody can provoke are rate-limited. */
  private void warn(ServerConnection client, String cause, String reason) {
    String line =
        "store server on port %d drops client %s: %s".formatted(port, client.peer, reason);
    if (token.isSet() && client.gate.isOpen()) {
      log.warn(line);
    } else {
      log.warn(cause, client.address, line);
    }
  }

  private void close(ServerConnection client) {
    if (!client.closed) {
      client.closed = true;
      unlink(client);
      client.key.attach(null);
      client.key.cancel();
      closeQuietly(client.channel);
      client.memory.close();
      stuck.remove(client);
      strangers.remove(client);
      client.cancelWaits();
    }
  }

  private static void closeQuietly(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception | OutOfMemoryError e) {
      LOG.log(Level.DEBUG, "closing", e);
    }
  }

  /** A part of the work for one client; an exception that it throws ends that client only. */
  private interface Step {
    void run() throws IOException;
  }
}
