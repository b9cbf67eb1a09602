package dev.tutti.aeron.session;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.DriverDirectory;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ConfigurationException;
import io.aeron.exceptions.RegistrationException;
import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongFunction;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/** The opener of a session with a server, which retries with growing pauses until the deadline. */
public final class SessionOpener {
  /** The setting that selects how messages travel. */
  public static final String TRANSPORT_SETTING = "TUTTI_AERON_TRANSPORT";

  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String host;
  private final int port;
  private final Duration timeout;
  private final ConnectOptions options;
  private final Timing timing;
  private final String server;
  private final long deadline;

  public SessionOpener(
      String host, int port, Duration timeout, ConnectOptions options, long deadline) {
    this.host = host;
    this.port = port;
    this.timeout = timeout;
    this.options = options;
    this.timing = Timing.of(options.lease());
    this.server = host + ":" + port;
    this.deadline = deadline;
  }

  public Session open() {
    long pause = FIRST_PAUSE_NANOS;
    @Nullable IOException reason = null;
    for (int attempt = 1; ; attempt++) {
      long began = System.nanoTime();
      try {
        return tryOpen();
      } catch (Handshake.TokenException e) {
        throw new StoreTokenException(
            "store server at %s: %s".formatted(server, e.getMessage()), e);
      } catch (MalformedMessageException e) {
        throw new StoreConnectionException(
            "%s is not a store over Aeron: %s".formatted(server, e.getMessage()), e);
      } catch (IOException e) {
        LOG.log(
            Level.DEBUG, "store server at {0}: attempt {1}: {2}", server, attempt, e.toString());
        // An attempt that began just before the deadline says less than those before it.
        boolean cut =
            e instanceof SocketTimeoutException && System.nanoTime() - began < LONGEST_PAUSE_NANOS;
        reason = cut && reason != null ? reason : e;
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          throw new StoreConnectionException(
              "no store server at %s within %d ms, %d %s: %s"
                  .formatted(
                      server,
                      timeout.toMillis(),
                      attempt,
                      attempt == 1 ? "attempt" : "attempts",
                      reason),
              reason);
        }
        LockSupport.parkNanos(
            Math.min(left, pause / 2 + ThreadLocalRandom.current().nextLong(pause)));
        requireNoInterrupt();
        pause = Math.min(LONGEST_PAUSE_NANOS, pause * 2);
      }
    }
  }

  private void requireNoInterrupt() {
    if (Thread.currentThread().isInterrupted()) {
      throw new StoreException(
          "interrupted while connecting to the store server at " + server,
          new InterruptedException());
    }
  }

  /** Connects to the first address of the server that answers. */
  private Control connect() throws IOException {
    IOException failure = new IOException("host " + host + " has no address");
    for (InetAddress address : InetAddress.getAllByName(host)) {
      try {
        return Control.connect(new InetSocketAddress(address, port), timing, deadline);
      } catch (IOException e) {
        failure = e;
      }
    }
    throw failure;
  }

  private Session tryOpen() throws IOException {
    Control control = connect();
    try {
      Handshake.Session session = Handshake.ask(control, options.token(), deadline);
      boolean shared =
          options.memory() && DriverDirectory.isShared(session.folder(), session.folderProof());
      if (!shared && !options.udp()) {
        throw new StoreException(
            "no shared memory with the store server at %s: this process does not see %s; unset %s to use UDP"
                .formatted(server, session.folder(), TRANSPORT_SETTING));
      }
      return start(shared ? overMemory(control, session) : overNetwork(control, session));
    } catch (RegistrationException | ConfigurationException e) {
      control.close();
      throw new StoreConnectionException(
          "store server at %s: the media driver refuses this process: %s".formatted(server, e), e);
    } catch (AeronException e) {
      control.close();
      throw new IOException("its media driver cannot be used: " + e, e);
    } catch (IOException | RuntimeException | Error e) {
      control.close();
      throw e;
    }
  }

  private static Session start(Session link) {
    try {
      link.start();
      return link;
    } catch (RuntimeException | Error e) {
      link.release();
      throw e;
    }
  }

  private Session overMemory(Control control, Handshake.Session session) throws IOException {
    await(control, () -> EmbeddedDriver.runs(session.driver()), "its media driver is not active");
    Aeron aeron = EmbeddedDriver.connect(session.driver(), timing);
    try {
      Subscription replies =
          added(
              control,
              aeron::getSubscription,
              aeron.asyncAddSubscription(Channels.IPC, session.replyStream()));
      Counter counter = added(control, aeron::getCounter, Doorbell.beginToMake(aeron));
      ReplyWaiters.Bells bells =
          new ReplyWaiters.Bells(Doorbell.of(aeron, counter), Doorbell.find(aeron, session.bell()));
      control.putByte(Handshake.IPC);
      control.putInt(bells.own().number());
      return open(control, session, aeron, null, bells, replies, Channels.IPC);
    } catch (IOException | RuntimeException | Error e) {
      aeron.close();
      throw e;
    }
  }

  private Session overNetwork(Control control, Handshake.Session session) throws IOException {
    EmbeddedDriver driver = EmbeddedDriver.start(options.directory(), options.driver(), timing, 1);
    if (options.spin()) {
      driver.spin();
    }
    Aeron aeron = null;
    try {
      aeron = EmbeddedDriver.connect(driver.path(), timing);
      Subscription replies =
          added(
              control,
              aeron::getSubscription,
              aeron.asyncAddSubscription(
                  Channels.udp(control.localAddress(), 0), session.replyStream()));
      await(
          control,
          () -> replies.tryResolveChannelEndpointPort() != null,
          "no UDP port could be opened on this host");
      String here = String.valueOf(replies.resolvedEndpoint());
      control.putByte(Handshake.UDP);
      control.putText(here);
      Session link =
          open(
              control,
              session,
              aeron,
              driver,
              null,
              replies,
              Channels.udp(control.remoteAddress(), port));
      LOG.log(
          Level.INFO,
          "store over Aeron: UDP from {0} to {1}; the route to the server determines the interface",
          here,
          server);
      return link;
    } catch (IOException | RuntimeException | Error e) {
      CloseHelper.quietCloseAll(aeron, driver);
      throw e;
    }
  }

  private Session open(
      Control control,
      Handshake.Session session,
      Aeron aeron,
      @Nullable EmbeddedDriver driver,
      ReplyWaiters.@Nullable Bells bells,
      Subscription replies,
      String channel)
      throws IOException {
    control.send();
    if (control.readByte(deadline) != Handshake.OK) {
      throw new StoreConnectionException(
          "store server at %s cannot serve this process: %s"
              .formatted(server, control.readText(deadline)));
    }
    ExclusivePublication requests =
        added(
            control,
            aeron::getExclusivePublication,
            aeron.asyncAddExclusivePublication(Channels.out(channel), session.requestStream()));
    await(
        control,
        () -> requests.isConnected() && replies.isConnected(),
        driver == null
            ? "its media driver does not connect"
            : "it answers over TCP, but not over UDP on the same port; open that port for UDP in"
                + " both directions");
    return new Session(
        server, control, aeron, driver, bells, session, replies, requests, options.spin());
  }

  /** Waits for what a driver is asked to add; the driver may have stalled. */
  private <T> T added(Control control, LongFunction<@Nullable T> find, long number)
      throws IOException {
    AtomicReference<@Nullable T> found = new AtomicReference<>();
    await(
        control,
        () -> {
          found.set(find.apply(number));
          return found.get() != null;
        },
        "its media driver does not answer");
    return Objects.requireNonNull(found.get());
  }

  private void await(Control control, BooleanSupplier condition, String otherwise)
      throws IOException {
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - deadline > 0) {
        throw new StoreConnectionException(
            "store server at %s: %s (timeout %d ms)"
                .formatted(server, otherwise, timeout.toMillis()));
      }
      if (!control.isQuiet()) {
        throw new EOFException("it stopped while this process was connecting");
      }
      requireNoInterrupt();
    }
  }
}
