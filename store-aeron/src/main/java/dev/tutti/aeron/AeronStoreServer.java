package dev.tutti.aeron;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.server.ServerAgent;
import dev.tutti.aeron.server.ServerClient;
import dev.tutti.aeron.server.ServerPort;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import io.aeron.Aeron;
import io.aeron.Subscription;
import io.aeron.exceptions.AeronException;
import java.io.Closeable;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/**
 * A server of a store over Aeron, for {@link AeronStore}: over shared memory to clients on this
 * host, over UDP to those on other hosts.
 *
 * <p>The server holds its keys in memory only and ends with its process; every client then fails at
 * once, or within the lease if the whole host is lost. One daemon thread, {@code tutti-as}, serves
 * all clients; another, {@code tutti-md}, is the media driver. The port is bound for TCP, over
 * which clients agree with the server on how to talk, and also for UDP as soon as a client on
 * another host connects. If the job has a {@linkplain JobToken token}, a client that does not prove
 * it receives nothing.
 */
public final class AeronStoreServer implements AutoCloseable {
  /*
   * Closing first ends the listener, so no new client connects, and then the thread that owns the
   * sessions. That thread closes their control connections, which is how clients notice. The driver
   * ends last. This order also works if Aeron's client has ended itself after a long pause, when
   * nothing is received any longer.
   */
  private static final Logger LOG = System.getLogger(AeronStoreServer.class.getName());

  /** The number of client processes for which there must be room if no number is given. */
  static final int DEFAULT_CLIENTS = 10;

  private static final int MOST_STRANGERS = 1024;
  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 1000;
  private static final Duration STUCK = Duration.ofSeconds(30);
  private static final Duration CLOSE = Duration.ofSeconds(10);

  private static final SecureRandom RANDOM = new SecureRandom();

  private final ServerPort port;
  private final ServerSocket listener;
  private final Doorbell bell;
  private final EmbeddedDriver driver;
  private final Aeron aeron;
  private final Timing timing;
  private final boolean spin;
  private final JobToken token;
  private final ServerAgent agent;
  private final Thread agentThread;
  private final Thread hook;
  private final AtomicInteger count = new AtomicInteger();
  // Must differ from other servers on the same driver: the reader of a stream can stop it.
  private final AtomicInteger nextStream = new AtomicInteger(RANDOM.nextInt() & ~1);
  private final Set<Control> strangers = ConcurrentHashMap.newKeySet();
  private final Queue<Control> unknown = new ConcurrentLinkedQueue<>();
  private final LimitedLog log = new LimitedLog(LOG, Time.SYSTEM);
  private volatile boolean closed;

  /**
   * Starts serving on all addresses.
   *
   * @param options the port, the token, the folder for shared memory and the lease; the rest is not
   *     used
   * @throws StoreConnectionException if the port is in use or cannot be bound
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronStoreServer(AeronStoreOptions options) {
    this(options, null);
  }

  /**
   * Starts serving.
   *
   * @param options the port, the token, the folder for shared memory and the lease; the rest is not
   *     used
   * @param address the local address to listen on, or null for all, IPv6 and IPv4
   * @throws StoreConnectionException if the port is in use or cannot be bound
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronStoreServer(AeronStoreOptions options, @Nullable InetAddress address) {
    this(options, address, DEFAULT_CLIENTS);
  }

  /** Starts serving, if shared memory has room for the given number of client processes. */
  AeronStoreServer(AeronStoreOptions options, @Nullable InetAddress address, int clients) {
    JvmFlags.require();
    this.token = options.token();
    this.timing = Timing.of(options.lease());
    this.spin = options.spin();
    this.port = ServerPort.listen(new InetSocketAddress(address, options.port()));
    this.listener = port.listener();
    EmbeddedDriver started = null;
    Aeron client = null;
    try {
      started = EmbeddedDriver.start(options.directory(), options.driver(), timing, clients);
      this.driver = started;
      client = EmbeddedDriver.connect(driver.path(), timing);
      this.aeron = client;
      this.bell = Doorbell.make(aeron);
      this.agent =
          new ServerAgent(
              "store server on port " + port(),
              bell,
              STUCK.toNanos(),
              options.spin(),
              log,
              token.isSet());
    } catch (IOException e) {
      release(client, started);
      throw new StoreException("cannot wait for clients: " + e, e);
    } catch (AeronException e) {
      release(client, started);
      throw new StoreException("the media driver cannot be used: " + e, e);
    } catch (RuntimeException | Error e) {
      release(client, started);
      throw e;
    }
    this.agentThread = EmbeddedDriver.daemon("tutti-as", this::serve);
    this.hook = Thread.ofPlatform().name("tutti-exit").unstarted(this::close);
    try {
      EmbeddedDriver.whenEnded(aeron, () -> closed, this::endedItself);
      agentThread.start();
      EmbeddedDriver.daemon("tutti-as-accept", this::accept).start();
      Runtime.getRuntime().addShutdownHook(hook);
    } catch (RuntimeException | Error e) {
      closed = true;
      shutDown();
      throw e;
    }
    if (!token.isSet() && !listener.getInetAddress().isLoopbackAddress()) {
      LOG.log(
          Level.WARNING,
          "store server on port %d accepts any client that reaches it; %s is not set"
              .formatted(port(), JobToken.SETTING.name()));
    }
  }

  /** Returns whether the server is running: it was not closed, and has not ended by itself. */
  public boolean isRunning() {
    return !closed && agentThread.isAlive();
  }

  private void release(@Nullable Aeron client, @Nullable EmbeddedDriver started) {
    close(port);
    CloseHelper.quietCloseAll(client, started);
  }

  /** Returns the port. */
  public int port() {
    return port.number();
  }

  /** Returns whether the server's thread sleeps until its bell is rung. */
  boolean sleeps() {
    return bell.isArmed();
  }

  private void serve() {
    try {
      agent.run();
    } finally {
      close(port);
    }
  }

  /** Accepts clients until the port is closed; then closes a server that ended by itself. */
  private void accept() {
    long pause = 0;
    try {
      while (!listener.isClosed()) {
        try {
          begin(listener.accept());
          pause = 0;
        } catch (IOException | OutOfMemoryError e) {
          pause = Math.clamp(2 * pause, FIRST_PAUSE_MILLIS, LONGEST_PAUSE_MILLIS);
          waitToAccept(e, pause);
        }
      }
    } catch (RuntimeException | Error e) {
      agent.fail(e);
    }
    close();
  }

  private void begin(Socket socket) throws IOException {
    int there = count.get();
    if (there >= MOST_STRANGERS) {
      // A connection that stays silent must not keep clients out.
      Control eldest = unknown.poll();
      if (eldest != null) {
        eldest.close();
      }
    }
    if (there >= 2 * MOST_STRANGERS) {
      socket.close();
      return;
    }
    count.incrementAndGet();
    boolean begun = false;
    try {
      Thread.ofVirtual().name("tutti-as-session").start(() -> serve(socket));
      begun = true;
    } finally {
      if (!begun) {
        count.decrementAndGet();
        socket.close();
      }
    }
  }

  private void waitToAccept(Throwable cause, long millis) {
    if (listener.isClosed()) {
      return;
    }
    log.warn(
        "cannot accept",
        "",
        "store server on port %d cannot accept clients and will try again: %s"
            .formatted(port(), cause));
    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  /** Agrees with a client on a session, then leaves the client to the agent. */
  private void serve(Socket socket) {
    boolean served = false;
    try {
      Control control = new Control(socket, timing);
      strangers.add(control);
      unknown.add(control);
      try {
        // close() sets the flag before it ends all strangers, so a later one must check it.
        served = !closed && agree(control);
      } finally {
        strangers.remove(control);
        unknown.remove(control);
      }
    } catch (MalformedMessageException | Handshake.TokenException e) {
      log.warn(
          "refuses client",
          address(socket),
          "store server on port %d refuses client %s: %s"
              .formatted(port(), HostPort.text(socket.getRemoteSocketAddress()), e.getMessage()));
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client disconnected before it was served", e);
    } catch (RuntimeException | OutOfMemoryError e) {
      log.warn("failure", address(socket), "store server on port %d: %s".formatted(port(), e));
    } finally {
      count.decrementAndGet();
      if (!served) {
        close(socket);
      }
    }
  }

  private static void close(Closeable socket) {
    try {
      socket.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "closing", e);
    }
  }

  private static String address(Socket socket) {
    InetAddress address = socket.getInetAddress();
    return address == null ? "" : address.getHostAddress();
  }

  private boolean agree(Control control) throws IOException {
    long deadline = System.nanoTime() + CLOSE.toNanos();
    Handshake.admit(control, token, deadline);
    unknown.remove(control);
    int stream = nextStream.getAndAdd(2);
    Handshake.Session session =
        new Handshake.Session(
            stream,
            stream + 1,
            RANDOM.nextLong(),
            bell.number(),
            driver.path(),
            driver.directory().path().toString(),
            driver.directory().proof());
    Handshake.tell(control, session);
    int transport = control.readByte(deadline);
    String there = transport == Handshake.UDP ? control.readText(deadline) : "";
    int bellThere = transport == Handshake.IPC ? control.readInt(deadline) : 0;
    ServerClient client;
    try {
      client = open(control, session, transport, there, bellThere);
    } catch (RuntimeException e) {
      control.putByte(Handshake.FAILED);
      control.putText(String.valueOf(e.getMessage()));
      control.send();
      log.warn(
          "cannot serve client",
          control.remoteAddress().getHostAddress(),
          "store server on port %d cannot serve client %s: %s"
              .formatted(port(), control.peer(), e.getMessage()));
      return false;
    }
    boolean served = false;
    try {
      // The agent sends and receives without blocking, so this comes first.
      control.putByte(Handshake.OK);
      control.send();
      served = agent.add(client);
    } finally {
      if (!served) {
        client.close();
      }
    }
    return served;
  }

  private ServerClient open(
      Control control, Handshake.Session session, int transport, String there, int bellThere)
      throws IOException {
    String in = Channels.IPC;
    String out = Channels.IPC;
    if (transport == Handshake.UDP) {
      if (spin) {
        driver.spin();
      }
      in = Channels.udp(control.localAddress(), port());
      out = Channels.udp(control.remoteAddress(), Channels.port(there));
    } else if (transport != Handshake.IPC) {
      throw new MalformedMessageException("unknown transport " + transport);
    }
    @Nullable Doorbell clientBell =
        transport == Handshake.IPC ? Doorbell.find(aeron, bellThere) : null;
    driver.requireRoom();
    // Requests that arrived before this process had the stream did not ring the bell.
    String requestsIn = in;
    Supplier<Subscription> subscribe =
        () ->
            aeron.addSubscription(
                requestsIn, session.requestStream(), image -> agent.wake(), image -> {});
    Subscription requests =
        transport == Handshake.UDP ? port.handOverUdp(subscribe) : subscribe.get();
    try {
      var replies = aeron.addExclusivePublication(Channels.out(out), session.replyStream());
      return new ServerClient(
          control, session.session(), requests, replies, clientBell, agent.commands());
    } catch (RuntimeException e) {
      requests.close();
      throw e;
    }
  }

  /**
   * Removes all keys and queues except those whose names begin with a prefix; clients stay
   * connected.
   *
   * @param keptPrefix the prefix of the names to keep
   * @throws StoreException if the server has ended
   */
  public void forgetAllBut(String keptPrefix) {
    CountDownLatch done = new CountDownLatch(1);
    boolean served =
        agent.execute(
            () -> {
              agent.commands().table().forget(key -> !key.startsWith(keptPrefix));
              done.countDown();
            });
    try {
      if (!served || !done.await(CLOSE.toNanos(), TimeUnit.NANOSECONDS)) {
        throw new StoreException("store server on port %d has stopped".formatted(port()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while the store server was deleting its keys", e);
    }
  }

  /** Ends the server, whose clients fail at once. Further calls do nothing. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      shutDown();
      try {
        Runtime.getRuntime().removeShutdownHook(hook);
      } catch (IllegalStateException e) {
        LOG.log(Level.DEBUG, "the JVM is exiting", e);
      }
    }
  }

  private void endedItself() {
    LOG.log(
        Level.ERROR,
        "store server on port %d stopped: %s".formatted(port(), EmbeddedDriver.ENDED_ITSELF));
    agent.stop();
  }

  private void shutDown() {
    close(port);
    strangers.forEach(Control::close);
    agent.stop();
    long deadline = System.nanoTime() + CLOSE.toNanos();
    boolean _ =
        Uninterrupted.await(() -> agentThread.join(Duration.ofNanos(deadline - System.nanoTime())));
    aeron.close();
    driver.close();
    log.close();
  }

  @Override
  public String toString() {
    return "AeronStoreServer[port=" + port() + "]";
  }
}
