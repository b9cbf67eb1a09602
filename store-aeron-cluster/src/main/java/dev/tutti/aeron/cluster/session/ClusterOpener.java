package dev.tutti.aeron.cluster.session;

import static io.aeron.cluster.ConsensusModule.Configuration.SESSION_LIMIT_MSG;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.cluster.member.ClusterHello;
import dev.tutti.aeron.cluster.member.ClusterLogs;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.session.Sessions;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.SocketException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/** The opener of a session with a cluster, which retries until the deadline. */
public final class ClusterOpener {
  /** The sessions of this process with clusters. */
  public static final Sessions<ClusterSession> SESSIONS = new Sessions<>();

  private static final Logger LOG = System.getLogger(ClusterLogs.CLIENT);
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final long TRY_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long MOST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final String INGRESS = "aeron:udp?term-length=" + Channels.TERM_BYTES;

  private final ClusterMembers members;
  private final ConnectOptions options;
  private final Duration timeout;
  private final Timing timing;
  private final String server;
  private final long session = RANDOM.nextLong();
  private final long deadline;

  public ClusterOpener(
      ClusterMembers members, ConnectOptions options, Duration timeout, long deadline) {
    this.timeout = timeout;
    this.members = members;
    this.options = options;
    this.timing = Timing.of(options.lease());
    this.server = "store cluster at " + members;
    this.deadline = deadline;
  }

  public ClusterSession open() {
    EmbeddedDriver driver =
        EmbeddedDriver.start(
            options.directory(), options.driver(), timing, 1 + members.all().size());
    Aeron aeron = null;
    try {
      if (options.spin()) {
        driver.spin();
      }
      aeron = EmbeddedDriver.connect(driver.path(), timing);
      Aeron client = aeron;
      long second = RANDOM.nextLong();
      ClusterProbe probe = new ClusterProbe(own -> begin(client, own, second), second);
      ClusterSession link =
          new ClusterSession(server, driver, aeron, timing, session, probe, options.spin());
      link.start(connect(aeron, link));
      return link;
    } catch (AeronException e) {
      CloseHelper.quietCloseAll(aeron, driver);
      throw new StoreConnectionException(
          "%s: the media driver cannot be used: %s".formatted(server, e), e);
    } catch (RuntimeException | Error e) {
      CloseHelper.quietCloseAll(aeron, driver);
      throw e;
    }
  }

  private AeronCluster connect(Aeron aeron, ClusterSession link) {
    long pause = PAUSE_NANOS;
    @Nullable Exception why = null;
    for (int attempt = 1; ; attempt++) {
      try {
        return attempt(aeron, link);
      } catch (AeronException | IOException e) {
        LOG.log(Level.DEBUG, "{0}: attempt {1}: {2}", server, attempt, e.toString());
        // An attempt that the deadline cut off says less than the one before.
        why = e instanceof IOException && why != null ? why : e;
        if (aeron.isClosed()) {
          throw new StoreConnectionException(
              "no session with the %s: %s".formatted(server, EmbeddedDriver.ENDED_ITSELF), e);
        }
        if (System.nanoTime() - deadline > 0) {
          throw new StoreConnectionException(describe(attempt, why), why);
        }
        pause(Math.min(pause, Math.max(1, deadline - System.nanoTime())));
        pause = Math.min(2 * pause, MOST_PAUSE_NANOS);
      }
    }
  }

  private String describe(int attempts, Exception last) {
    List<String> unresolved = members.unresolved();
    String times = attempts == 1 ? "attempt" : "attempts";
    String tried = "within %d ms, %d %s".formatted(timeout.toMillis(), attempts, times);
    return unresolved.isEmpty()
        ? "no leader of the %s %s: %s".formatted(server, tried, reason(last))
        : "no session with the %s %s: cannot resolve %s (%s)"
            .formatted(server, tried, String.join(", ", unresolved), last);
  }

  private static String reason(Exception last) {
    return String.valueOf(last.getMessage()).contains(SESSION_LIMIT_MSG)
        ? "it has as many sessions as it allows (%d)".formatted(ClusterNode.MOST_SESSIONS)
        : last.toString();
  }

  private AeronCluster.AsyncConnect begin(Aeron aeron, EgressListener listener, long number)
      throws SocketException {
    return AeronCluster.asyncConnect(
        new AeronCluster.Context()
            .aeron(aeron)
            .ownsAeronClient(false)
            .ingressChannel(INGRESS)
            .ingressEndpoints(members.ingress())
            .egressChannel(Channels.udp(members.localAddress(), 0))
            .egressListener(listener)
            .messageTimeoutNs(TRY_NANOS)
            .newLeaderTimeoutNs(timing.livenessNanos())
            .credentialsSupplier(
                new ClusterHello(server, ClusterHello.Labels.STORE, options.token(), number)));
  }

  private AeronCluster attempt(Aeron aeron, ClusterSession link) throws IOException {
    AeronCluster.AsyncConnect connecting = begin(aeron, link, session);
    try {
      while (true) {
        AeronCluster connected = connecting.poll();
        if (connected != null) {
          return connected;
        }
        if (System.nanoTime() - deadline > 0) {
          throw new IOException("no answer from its leader");
        }
        pause(PAUSE_NANOS);
      }
    } catch (RuntimeException | IOException e) {
      connecting.close();
      throw e;
    }
  }

  private void pause(long nanos) {
    LockSupport.parkNanos(nanos);
    if (Thread.currentThread().isInterrupted()) {
      throw new StoreException(
          "interrupted while connecting to the " + server, new InterruptedException());
    }
  }
}
