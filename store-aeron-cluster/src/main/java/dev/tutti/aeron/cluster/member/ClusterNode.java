package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.driver.StreamLimits;
import dev.tutti.aeron.wire.SteadyClock;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.store.JobToken;
import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.RethrowingErrorHandler;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.client.AeronArchive;
import io.aeron.cluster.ClusterControl;
import io.aeron.cluster.ConsensusModule;
import io.aeron.cluster.ElectionState;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredServiceContainer;
import io.aeron.driver.Configuration;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.agrona.CloseHelper;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NoOpLock;
import org.agrona.concurrent.YieldingIdleStrategy;
import org.jspecify.annotations.Nullable;

/** The running parts of one member: its archive, its consensus module, and the store. */
public final class ClusterNode implements AutoCloseable {
  private static final String IPC = "aeron:ipc?term-length=" + Channels.TERM_BYTES;
  private static final String UDP = "aeron:udp?term-length=" + Channels.TERM_BYTES;

  /** What holds for the channels to clients, whatever they request. */
  private static final String EGRESS = UDP + "|sparse=false|mtu=" + Configuration.mtuLength();

  private static final String LOG_CHANNEL = "aeron:udp?term-length=" + ClusterFolder.LOG_TERM_BYTES;
  private static final int CATALOG_BYTES = 256 * 1024;
  private static final long QUERY_NANOS = TimeUnit.SECONDS.toNanos(1);

  /**
   * The number of clients that a cluster serves; each has eight counters in the leader's memory.
   */
  public static final int MOST_CLIENTS = 512;

  /** The sessions of clients and of those that have not proved yet to be one. */
  public static final int MOST_SESSIONS = MOST_CLIENTS + 128;

  /** The limits of a member's driver. */
  public static final StreamLimits LIMITS =
      new StreamLimits(ClusterFolder.LOG_TERM_BYTES, MOST_SESSIONS, MemberPort::new);

  private static final int ERRORS_TYPE = 2971;

  /** The number of sessions for which a member reserves shared memory for itself. */
  public static final int SESSIONS = 22;

  private final ClusterMembers members;
  private final int member;
  private final ClusterFolder folder;
  private final EmbeddedDriver driver;
  private final Timing timing;
  private final JobToken token;
  private final int mostClients;
  private final Supplier<IdleStrategy> idling;
  private final Runnable ended;
  private final MemberLog log;
  private final ClusterService service = new ClusterService();
  private @Nullable Archive archive;
  private @Nullable ConsensusModule consensus;
  private @Nullable ClusteredServiceContainer container;

  /**
   * Starts a member.
   *
   * @param members all members
   * @param member the number of this member
   * @param folder the folder in which it keeps its log
   * @param driver the member's media driver
   * @param timing the member's times
   * @param token the token that clients must prove
   * @param mostClients the number of clients to serve, at most {@link #MOST_CLIENTS}
   * @param spin whether the member's threads sleep for 20 us at most
   * @param ended the action to run when a part of the member ends because of an error
   */
  public ClusterNode(
      ClusterMembers members,
      int member,
      ClusterFolder folder,
      EmbeddedDriver driver,
      Timing timing,
      JobToken token,
      int mostClients,
      boolean spin,
      Runnable ended) {
    this.members = members;
    this.member = member;
    this.folder = folder;
    this.driver = driver;
    this.timing = timing;
    this.token = token;
    this.mostClients = mostClients;
    this.ended = ended;
    this.log =
        new MemberLog(
            "member %d of the store cluster".formatted(member), MOST_SESSIONS, folder::fullness);
    this.idling =
        () ->
            new BackoffIdleStrategy(
                10,
                20,
                TimeUnit.MICROSECONDS.toNanos(20),
                TimeUnit.MICROSECONDS.toNanos(spin ? 20 : 1000));
    try {
      archive = Archive.launch(archive());
      consensus = ConsensusModule.launch(consensus());
      container = ClusteredServiceContainer.launch(container());
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private Aeron client(String name) {
    return Aeron.connect(
        new Aeron.Context()
            .aeronDirectoryName(driver.path())
            .epochClock(EmbeddedDriver.clock(driver.path()))
            .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(timing.livenessNanos()))
            .useConductorAgentInvoker(true)
            .clientLock(NoOpLock.INSTANCE)
            .awaitingIdleStrategy(YieldingIdleStrategy.INSTANCE)
            .errorHandler(log.errors(name))
            .subscriberErrorHandler(RethrowingErrorHandler.INSTANCE)
            .clientName(name));
  }

  private static Counter errorCounter(Aeron aeron, String name) {
    return aeron.addCounter(ERRORS_TYPE, "errors of " + name);
  }

  /** Ends this member when one of its parts ends, before the memory of its counters is released. */
  private ErrorHandler endings(String name) {
    ErrorHandler errors = log.errors(name);
    return problem -> {
      if (problem instanceof AgentTerminationException || problem instanceof Error) {
        ended.run();
      }
      errors.onError(problem);
    };
  }

  /**
   * Makes the threads of a part of this member.
   *
   * @param close closes what the part leaves in memory if it ends on a full disk
   */
  private ThreadFactory threads(String name, Runnable close) {
    return task ->
        EmbeddedDriver.daemon(
            name,
            () -> {
              try {
                runLogged(name, task);
                runLogged(name, close);
              } finally {
                ended.run();
              }
            });
  }

  private void runLogged(String name, Runnable task) {
    try {
      task.run();
    } catch (InternalError e) {
      // Aeron also records its errors in a file in memory, which fails on a full disk.
      log.errors(name).onError(e);
    }
  }

  private Archive.Context archive() {
    Aeron aeron = client("archive");
    Archive.Context context = new Archive.Context();
    context
        .aeron(aeron)
        .ownsAeronClient(true)
        .epochClock(SteadyClock.PROCESS)
        .recordChecksum(new RecordingChecksum())
        .errorCounter(errorCounter(aeron, "archive"))
        .errorHandler(endings("archive"))
        .archiveDir(folder.archive())
        .controlChannel(UDP + "|endpoint=" + members.endpoint(member, 4))
        .controlTermBufferLength(Channels.TERM_BYTES)
        .controlTermBufferSparse(false)
        .localControlChannel(IPC)
        .replicationChannel("aeron:udp?endpoint=" + members.anyPort(member))
        .archiveClientContext(archiveClient())
        .connectTimeoutNs(timing.livenessNanos())
        .recordingEventsEnabled(false)
        .segmentFileLength(ClusterFolder.SEGMENT_BYTES)
        // A segment at once: where the last fragment ends a part that was read, Aeron looks for
        // it before the memory of the next part.
        .fileIoMaxLength(ClusterFolder.SEGMENT_BYTES)
        .catalogCapacity(CATALOG_BYTES)
        .lowStorageSpaceThreshold(ClusterFolder.SEGMENT_BYTES)
        .threadingMode(ArchiveThreadingMode.SHARED)
        .threadFactory(threads("tutti-ak-archive", context::close))
        .idleStrategySupplier(idling);
    if (token.isSet()) {
      context.authenticatorSupplier(() -> admission(ClusterHello.Labels.ARCHIVE, () -> {}));
    }
    return context;
  }

  private AeronArchive.Context archiveClient() {
    AeronArchive.Context context =
        new AeronArchive.Context()
            .controlResponseChannel("aeron:udp?endpoint=" + members.anyPort(member));
    return withToken(context);
  }

  private AeronArchive.Context ownArchive() {
    return withToken(
        new AeronArchive.Context()
            .messageTimeoutNs(timing.livenessNanos())
            .controlRequestChannel(IPC)
            .controlResponseChannel(IPC));
  }

  private AeronArchive.Context withToken(AeronArchive.Context context) {
    return token.isSet()
        ? context.credentialsSupplier(
            new ClusterHello(name(), ClusterHello.Labels.ARCHIVE, token, 0))
        : context;
  }

  private ClusterAdmission admission(ClusterHello.Labels labels, ClusterAdmission.Room room) {
    return new ClusterAdmission(name(), labels, token, room);
  }

  private ConsensusModule.Context consensus() {
    Aeron aeron = client("agreement");
    ConsensusModule.Context context = new ConsensusModule.Context();
    return context
        .aeron(aeron)
        .ownsAeronClient(true)
        .epochClock(SteadyClock.PROCESS)
        .clusterClock(SteadyClock.PROCESS::time)
        .maxConcurrentSessions(MOST_SESSIONS)
        .egressChannel(EGRESS)
        .errorCounter(errorCounter(aeron, "agreement"))
        .errorLog(log.recorded())
        .errorHandler(endings("agreement"))
        .clusterDir(folder.cluster())
        .clusterMemberId(member)
        .clusterMembers(members.endpoints())
        .ingressChannel(UDP)
        .logChannel(LOG_CHANNEL)
        .consensusChannel(UDP)
        .controlChannel(IPC)
        .snapshotChannel(IPC)
        .replayChannel(IPC)
        .replicationChannel("aeron:udp?endpoint=" + members.anyPort(member))
        .archiveContext(ownArchive())
        .authenticatorSupplier(() -> admission(ClusterHello.Labels.STORE, this::requireRoom))
        .sessionTimeoutNs(timing.silenceNanos())
        .leaderHeartbeatTimeoutNs(timing.leaderNanos())
        .electionTimeoutNs(timing.electionNanos())
        .startupCanvassTimeoutNs(timing.gatherNanos())
        .terminationHook(ended)
        .threadFactory(threads("tutti-ak-agree", context::close))
        .idleStrategySupplier(idling);
  }

  private ClusteredServiceContainer.Context container() {
    Aeron aeron = client("store");
    ClusteredServiceContainer.Context context = new ClusteredServiceContainer.Context();
    return context
        .aeron(aeron)
        .ownsAeronClient(true)
        .epochClock(SteadyClock.PROCESS)
        .errorCounter(errorCounter(aeron, "store"))
        .errorHandler(endings("store"))
        .clusterDir(folder.cluster())
        .clusteredService(service)
        .isRespondingService(false)
        .controlChannel(IPC)
        .snapshotChannel(IPC)
        .replayChannel(IPC)
        .archiveContext(ownArchive())
        .terminationHook(ended)
        .threadFactory(threads("tutti-ak-store", context::close))
        .idleStrategySupplier(idling);
  }

  private void requireRoom() throws IOException {
    if (service.clients() >= mostClients) {
      throw new StoreException(
          "it serves %d clients already, the most that a store cluster does"
              .formatted(mostClients));
    }
    driver.requireRoom();
  }

  private String name() {
    return "member %d of the store cluster at %s".formatted(member, members);
  }

  private ConsensusModule.Context running() {
    ConsensusModule module = consensus;
    if (module == null) {
      throw new IllegalStateException(name() + " is closed");
    }
    return module.context();
  }

  /** Reads a counter; returns -1 if its memory has been released. */
  private static long read(Counter counter) {
    return counter.isClosed() ? -1 : counter.get();
  }

  /**
   * Logs what this member refused since the last call; called by one thread, every second or so.
   */
  public void look() {
    log.look();
  }

  public boolean isLeader() {
    return read(running().clusterNodeRoleCounter()) == Cluster.Role.LEADER.code();
  }

  /** Returns whether no election is in progress here. */
  public boolean isElected() {
    return read(running().electionStateCounter()) == ElectionState.CLOSED.code();
  }

  /** Returns the number of bytes that the log has grown since the last snapshot. */
  public long logSinceSnapshot() {
    return read(running().commitPositionCounter()) - service.snapshotPosition();
  }

  public long snapshots() {
    return read(running().snapshotCounter());
  }

  /**
   * Returns, on the leader, whether all members have the log up to the last snapshot, so that none
   * will need anything older.
   */
  public boolean isFollowedByAll() {
    long needed = service.snapshotPosition();
    try (Aeron aeron = EmbeddedDriver.connect(driver.path(), timing)) {
      List<Long> positions =
          MemberQuery.positions(aeron, running(), System.nanoTime() + QUERY_NANOS);
      return positions.size() == members.all().size()
          && positions.stream().allMatch(position -> position >= needed);
    }
  }

  /** Returns how far this member has come, for a {@link MemberWatch}. */
  public MemberWatch.Progress progress() {
    long committed = read(running().commitPositionCounter());
    boolean waiting = isElected() ? isLeader() && requestsWait(committed) : isLeftInElection();
    return new MemberWatch.Progress(committed, waiting);
  }

  private boolean requestsWait(long committed) {
    return driver
        .counters()
        .map(counters -> WaitingRequests.exist(running(), counters, committed))
        .orElse(false);
  }

  /**
   * Returns whether an election ends here only if others act, in one of the two steps that Aeron
   * does not limit: a leader waits until a majority has its log, and a follower waits for the last
   * leader it had. Neither notices that the others have elected another leader in the meantime.
   */
  private boolean isLeftInElection() {
    long step = read(running().electionStateCounter());
    Archive own = archive;
    return (step == ElectionState.LEADER_LOG_REPLICATION.code()
            || step == ElectionState.FOLLOWER_REPLAY.code())
        && own != null
        && read(own.context().replaySessionCounter()) == 0; // nobody reads the log, here or there
  }

  /**
   * Makes all members take a snapshot, if this one is the leader; returns whether the snapshot was
   * requested.
   */
  public boolean takeSnapshot() {
    return isLeader()
        && ClusterControl.ToggleState.SNAPSHOT.toggle(running().controlToggleCounter());
  }

  /**
   * Deletes everything older than the last snapshots.
   *
   * @param kept the number of snapshots to keep
   */
  public void purge(int kept) {
    try (Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
        AeronArchive client = AeronArchive.connect(ownArchive().aeron(aeron))) {
      new ClusterPurge(folder.cluster(), kept).run(client);
    } catch (RuntimeException e) {
      log.errors("deleting what is older than its snapshots").onError(e);
    }
  }

  @Override
  public void close() {
    CloseHelper.closeAll(log.errors("closing"), container, consensus, archive);
  }
}
