package dev.tutti.aeron.cluster;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.cluster.member.ClusterFolder;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.aeron.cluster.member.MemberWatch;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.ReleasedPort;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/**
 * A member of a cluster that serves a store to {@link AeronClusterStore}: a replicated state
 * machine on Aeron Cluster (Raft).
 *
 * <p>A cluster of three members survives the loss of any one: whatever was answered is in the log
 * of two, and the others continue within two leases. Each member writes the log and snapshots of
 * the state to a folder, and continues from there when it is restarted, whether at once or after
 * all members have ended. A snapshot is taken whenever the log has grown by 64 MiB and all members
 * follow; the last three are kept, with the log from the oldest of them on. A member takes the UDP
 * port given in the list of members, and the next four. Its parts run on daemon threads, {@code
 * tutti-ak-*} and {@code tutti-md}.
 *
 * <p>If the job has a {@linkplain JobToken token}, clients must prove that they have it, and so
 * must readers of the archive. Traffic among the members is not protected: their ports after the
 * first must be reachable only by members.
 */
public final class AeronClusterServer implements AutoCloseable {
  /*
   * A leader that restarts considers all clients gone, which is right if all members start. A
   * member that ended a moment ago therefore waits until the others have elected another leader.
   *
   * Aeron cannot hand a snapshot to a member that misses a part of the log that no longer exists
   * anywhere. A new snapshot is therefore taken only when all members have the log up to the last
   * one, and each member keeps the log from the third last on.
   */
  private static final Logger LOG = System.getLogger(AeronClusterServer.class.getName());
  private static final long SNAPSHOT_BYTES = 64 << 20;
  private static final int SNAPSHOTS_KEPT = 3;
  private static final long ASK_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final ClusterMembers all;
  private final int member;
  private final AeronStoreOptions options;
  private final Timing timing;
  private final ClusterFolder folder;
  private final Thread hook;
  private final long snapshotBytes;
  private final int mostClients;
  private final Time time;
  private @Nullable Parts parts;
  private MemberWatch watch;
  private long purgedAfter;
  private long notAskBefore;
  private volatile boolean failed;
  private boolean closed;

  /**
   * Starts a member; returns before there is a leader. The start of a member that ended a moment
   * ago is delayed until the others have had time to elect a leader, 1.2 leases.
   *
   * @param members the host and port of each member, as in {@code a:29500,b:29500,c:29500}, the
   *     same for all
   * @param member the number of this member in the list, from 0
   * @param data the folder of this member, on disk
   * @param options the token, the folder for shared memory, the lease and spinning; the rest is not
   *     used
   * @throws IllegalArgumentException if the members cannot be read, or there is no member with that
   *     number
   * @throws StoreConnectionException if a port is in use or cannot be bound
   * @throws StoreException if there is no shared memory, the folder cannot be used, or this JVM
   *     does not let Aeron use shared memory
   */
  public AeronClusterServer(String members, int member, Path data, AeronStoreOptions options) {
    this(members, member, data, options, SNAPSHOT_BYTES, ClusterNode.MOST_CLIENTS, Time.SYSTEM);
  }

  /**
   * Starts a member that takes a snapshot whenever the log has grown by the given number of bytes,
   * and serves the given number of clients.
   *
   * @param time by which it looks at how far it has come
   */
  AeronClusterServer(
      String members,
      int member,
      Path data,
      AeronStoreOptions options,
      long snapshotBytes,
      int mostClients,
      Time time) {
    this.time = time;
    this.notAskBefore = time.nanoTime();
    this.snapshotBytes = snapshotBytes;
    this.mostClients = mostClients;
    JvmFlags.require();
    this.all = ClusterMembers.parse(members);
    this.member = member;
    this.options = options;
    HostPort own = all.member(member);
    requirePorts(own);
    folder = ClusterFolder.open(data, "member %d of %s".formatted(member, all));
    timing = Timing.of(options.lease());
    watch = new MemberWatch(timing.stuckNanos());
    try {
      awaitOthers();
      parts = new Parts();
    } catch (RuntimeException | Error e) {
      folder.close();
      throw e;
    }
    hook = Thread.ofPlatform().name("tutti-exit").unstarted(this::close);
    Runtime.getRuntime().addShutdownHook(hook);
    EmbeddedDriver.daemon("tutti-ak-look", this::look).start();
    if (!options.token().isSet()
        && !new InetSocketAddress(own.host(), 0).getAddress().isLoopbackAddress()) {
      LOG.log(
          Level.WARNING,
          "store cluster at %s accepts any client that reaches it; %s is not set"
              .formatted(all, JobToken.SETTING.name()));
    }
  }

  /** Lets the others elect a leader, if this member ended a moment ago. */
  private void awaitOthers() {
    if (all.all().size() > 1) {
      folder.awaitSilence(timing.electedNanos());
    }
  }

  /** What a member consists of, and starts anew when it steps down. */
  private final class Parts {
    final EmbeddedDriver driver;
    final ClusterNode node;
    volatile boolean ended;

    Parts() {
      EmbeddedDriver started = null;
      try {
        folder.prepare();
        started =
            EmbeddedDriver.start(
                options.directory(),
                options.driver(),
                timing,
                ClusterNode.SESSIONS,
                ClusterNode.LIMITS);
        driver = started;
        node =
            new ClusterNode(
                all,
                member,
                folder,
                driver,
                timing,
                options.token(),
                mostClients,
                options.spin(),
                () -> ended = true);
      } catch (RuntimeException | InternalError e) { // the latter where a file has no room
        CloseHelper.quietCloseAll(started);
        throw e instanceof StoreException known
            ? known
            : new StoreException(
                "cannot start member %d of %s: %s%s".formatted(member, all, folder.fullness(), e),
                e);
      }
    }

    void close() {
      node.close();
      driver.close();
    }
  }

  private static void requirePorts(HostPort own) {
    for (int i = 0; i < ClusterMembers.PORTS; i++) {
      InetSocketAddress wanted = new InetSocketAddress(own.host(), own.port() + i);
      try (DatagramSocket socket = new DatagramSocket(null)) {
        ReleasedPort.bind(
            Time.SYSTEM,
            () -> {
              socket.bind(wanted);
              return socket;
            });
      } catch (IOException e) {
        throw new StoreConnectionException(
            ("UDP port %d at %s for a member of a store cluster is in use or cannot be bound: %s;"
                    + " the member needs ports %d to %d")
                .formatted(
                    wanted.getPort(),
                    own.host(),
                    e.getMessage(),
                    own.port(),
                    own.port() + ClusterMembers.PORTS - 1),
            e);
      }
    }
  }

  private void look() {
    try {
      lookOn();
    } catch (Error e) {
      // Otherwise nobody would take snapshots, and the log would grow.
      failed = true;
      close();
      LOG.log(Level.ERROR, "a member of a store cluster stopped: " + e, e);
    }
  }

  private void lookOn() {
    while (touchIfRunning()) {
      time.park(this, LOOK_NANOS);
      if (isStuck()) {
        stepDown();
      }
      synchronized (this) {
        try {
          if (isRunning() && parts != null) {
            parts.node.look();
            lookAtLog(parts.node);
          }
        } catch (RuntimeException e) {
          LOG.log(Level.WARNING, "a member of a store cluster cannot check its log: " + e, e);
          notAskBefore = time.nanoTime() + ASK_PAUSE_NANOS;
        }
      }
    }
  }

  private synchronized boolean isStuck() {
    return isRunning() && parts != null && watch.isStuck(parts.node.progress(), time.nanoTime());
  }

  /** Starts this member anew, and in the meantime lets the others elect another leader. */
  void stepDown() {
    synchronized (this) {
      Parts old = parts;
      if (closed || old == null) {
        return;
      }
      LOG.log(
          Level.WARNING,
          "member %d of the store cluster at %s %s"
              .formatted(
                  member,
                  all,
                  (old.node.isElected()
                          ? "leads, but the members have confirmed no request for %d s; it starts"
                              + " anew, so that they elect another leader"
                          : "has waited for %d s in an election that the others do not take part"
                              + " in; it starts anew")
                      .formatted(TimeUnit.NANOSECONDS.toSeconds(timing.stuckNanos()))));
      folder.touch();
      parts = null;
      old.close();
    }
    awaitOthers();
    synchronized (this) {
      if (!closed) {
        watch = new MemberWatch(timing.stuckNanos());
        purgedAfter = 0;
        try {
          parts = new Parts();
        } catch (StoreException e) {
          failed = true;
          LOG.log(Level.ERROR, "a member of a store cluster cannot start anew: " + e, e);
        }
      }
    }
  }

  /** Marks the folder as in use, as long as it is: once it is closed, it may be another's. */
  private synchronized boolean touchIfRunning() {
    boolean running = isRunning();
    if (running) {
      folder.touch();
    }
    return running;
  }

  private boolean isTimeToAsk() {
    return time.nanoTime() - notAskBefore >= 0;
  }

  private void lookAtLog(ClusterNode node) {
    if (node.logSinceSnapshot() > snapshotBytes && node.isLeader() && isTimeToAsk()) {
      if (node.isFollowedByAll()) {
        takeSnapshot();
      } else {
        notAskBefore = time.nanoTime() + ASK_PAUSE_NANOS;
      }
    }
    long snapshots = snapshots();
    if (snapshots > purgedAfter) {
      purgedAfter = snapshots;
      node.purge(SNAPSHOTS_KEPT);
    }
  }

  /** Returns whether this member is the leader. */
  public synchronized boolean isLeader() {
    return isRunning() && parts != null && parts.node.isLeader();
  }

  /** Returns whether this member takes part: it is the leader, or follows the leader. */
  public synchronized boolean isReady() {
    return isRunning() && parts != null && parts.node.isElected();
  }

  /** Returns whether this member is running: it was not closed, and no error has ended it. */
  public synchronized boolean isRunning() {
    return !closed && !failed && (parts == null || !parts.ended);
  }

  /**
   * Makes all members take a snapshot, if this one is the leader; returns whether the snapshot was
   * requested.
   */
  synchronized boolean takeSnapshot() {
    return isRunning() && parts != null && parts.node.takeSnapshot();
  }

  /** Returns the number of snapshots that this member has taken since it started. */
  synchronized long snapshots() {
    return isRunning() && parts != null ? parts.node.snapshots() : 0;
  }

  /** Ends this member; further calls do nothing. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      if (parts != null) {
        parts.close();
      }
      folder.close();
      try {
        Runtime.getRuntime().removeShutdownHook(hook);
      } catch (IllegalStateException e) {
        LOG.log(Level.DEBUG, "the JVM is exiting", e);
      }
    }
  }
}
