package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.AgreedFailure;
import dev.tutti.runtime.failure.AnswerTimes;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.failure.JobBoard;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.failure.SetUpFailure;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.rendezvous.BackendAgreement;
import dev.tutti.runtime.rendezvous.InitFailure;
import dev.tutti.runtime.rendezvous.Rendezvous;
import dev.tutti.runtime.rendezvous.StoreWait;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.rendezvous.UninterruptedStore.SetUp;
import dev.tutti.runtime.rendezvous.WrittenKeys;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.Time;
import dev.tutti.store.PrefixStore;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The state that the groups of one rank share: the store, the backends' providers, the monitor. */
final class Job {
  /*
   * The keys follow PyTorch's own layout, so that ranks of both kinds can meet: the group of all
   * ranks has "default_pg/0/" + "/", its subgroups that and "NAME/" + "/", and each backend "TYPE/"
   * + "/" below. Tutti's own keys are kept apart under "tutti/", and contain the number of
   * restarts, because a launcher's store outlives the processes of an attempt. The launcher deletes
   * what an attempt wrote; in a store that nobody clears, and that ranks of PyTorch cannot use, all
   * keys of a later attempt are below "restart/" and the number of restarts. A rank that left a
   * job and joins again through the same store finds that it has left, and moves on to a new set of
   * keys, as all others do; so does a rank that was killed, if the others noticed. If another rank
   * serves the store, that rank serves a new store for the next job, and a rank that finds that it
   * has left waits for the new store.
   *
   * While a group is set up, a failure reported by another rank closes the stores through which the
   * backends on this rank wait for that rank. A failure that a backend reports before its group
   * exists is kept for the group.
   */
  private static final System.Logger LOG = System.getLogger(Job.class.getName());

  private static final Duration LEAVE = Duration.ofSeconds(2);
  private static final Duration RELEASE = Duration.ofSeconds(2);

  final int rank;
  final int size;
  final Settings settings;
  final Duration timeout;
  final Time time;
  final Rendezvous.Meeting meeting;
  private final Map<String, BackendProvider> providers;
  private final @Nullable Device device;
  private final Store rootStore;
  private final Store ownStore;
  private final JobMonitor monitor;

  private volatile @Nullable AutoCloseable debug;

  /** The flight records of this rank's groups. */
  final FlightRecords records;

  /**
   * Creates the state that the groups of a rank share.
   *
   * @param meeting the place where the ranks meet
   * @param earlier how many jobs at its store are over
   * @param providers the providers by kind of device
   * @param device the device of this rank, if it has one of its own
   * @param settings the settings of this rank
   * @param timeout the deadline of what the ranks do together
   * @param time the clock and waits of this rank
   */
  Job(
      Rendezvous.Meeting meeting,
      int earlier,
      Map<String, BackendProvider> providers,
      @Nullable Device device,
      Settings settings,
      Duration timeout,
      Time time) {
    this.meeting = meeting;
    this.providers = providers;
    this.device = device;
    this.rank = meeting.rank();
    this.size = meeting.size();
    this.settings = settings;
    this.timeout = timeout;
    this.time = time;
    this.records = new FlightRecords(rank, settings, time);
    Store attempt = meeting.store();
    int restarts = settings.get(RuntimeSettings.RESTART_COUNT);
    if (restarts > 0 && meeting.outlivesRestarts()) {
      attempt = new PrefixStore("restart/" + restarts, attempt);
    }
    Store base = earlier == 0 ? attempt : new PrefixStore("again/" + earlier, attempt);
    Store pytorch = meeting.ownsStore() ? new PrefixStore("default_pg", base) : base;
    this.rootStore = new PrefixStore("0/", pytorch);
    this.ownStore = new PrefixStore(lifePrefix(settings, earlier), meeting.store());
    this.monitor =
        new JobMonitor(
            new UninterruptedStore(ownStore, time),
            rank,
            meeting.serverRank(),
            AnswerTimes.of(settings),
            time);
  }

  /** Counts the jobs at a store that this rank has left, or that failed while it was in them. */
  static int earlierAt(Rendezvous.Meeting meeting, Settings settings) {
    int earlier = 0;
    while (isOver(meeting.store(), lifePrefix(settings, earlier) + "/", meeting.rank())) {
      earlier++;
    }
    return earlier;
  }

  /** Tells whether a rank left a job, or joined it and then a failure of the job was reported. */
  private static boolean isOver(Store store, String life, int rank) {
    return store.check(List.of(life + "left/" + rank))
        || (store.check(List.of(life + "joined/" + rank)) && JobMonitor.hasFailed(store, life));
  }

  private static String lifePrefix(Settings settings, int earlier) {
    String own = "tutti/" + settings.get(RuntimeSettings.RESTART_COUNT);
    return earlier == 0 ? own : own + "." + earlier;
  }

  void start() {
    monitor.join();
    JobStatus status = new JobStatus(rank, size, records);
    monitor.start(status::zipped);
    records.open();
    debug = JobDebug.start(status, records, settings, providers.values(), time);
  }

  Store userStore(String group) {
    return new PrefixStore("user/" + group, ownStore);
  }

  Store groupStore(String group) {
    return groupStore(group, null);
  }

  /** Returns the store of a group; keys that are written through it are noted. */
  Store groupStore(String group, @Nullable WrittenKeys written) {
    return new UninterruptedStore(new PrefixStore("group/" + group, ownStore), time, written);
  }

  /** Starts to note the keys that this rank writes for a call that makes groups. */
  WrittenKeys noteKeys(String call, int ranks) {
    return new WrittenKeys(ownStore, call, ranks);
  }

  /**
   * Lets the last rank delete the keys of a call, which this rank needs no more; does nothing if
   * the store does not answer.
   */
  void release(WrittenKeys written) {
    if (monitor.isUnheard()) {
      return;
    }
    try {
      BoundedCalls.call(
          time,
          "tutti-release-" + rank,
          monitor.times().answer(),
          () -> {
            written.release();
            return true;
          });
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot delete the keys of a closed group: {1}", rank, e);
    }
  }

  /**
   * Does the same when a group is closed, unless the group has failed: then others may still read
   * why.
   */
  void release(WrittenKeys written, Group closed) {
    if (closed.failures.isFailing() || !closed.isClosePublished()) {
      return;
    }
    String name = closed.identity.name();
    written.add(ownStore, JobBoard.progressKey(name, rank));
    long barriers = closed.monitoredBarriers.get();
    if (barriers > 0 && closed.identity.rank() == 0) {
      StoreMonitoredBarrier.keys(barriers, closed.identity.size())
          .forEach(key -> written.add(new PrefixStore("group/" + name, ownStore), key));
    }
    release(written);
  }

  /**
   * Creates the backends of a group and the group itself; all its ranks must take part.
   *
   * @param deadlineNanos the deadline of all waits during set-up, in terms of the clock of this
   *     rank
   * @param parent the group whose failures also end this one, and whose backends may create those
   *     of this one; null if there is no other group
   * @param ranks the members' ranks in the parent
   * @param written notes the keys that the backends write; null if they are never deleted
   */
  Group createGroup(
      String name,
      int groupRank,
      List<Integer> globalRanks,
      Duration groupTimeout,
      long deadlineNanos,
      @Nullable Group parent,
      List<Integer> ranks,
      @Nullable WrittenKeys written) {
    Store store = name.equals("0") ? rootStore : new PrefixStore(name + "/", rootStore);
    SetUp setUp = new SetUp(name, groupRank, deadlineNanos, monitor.times().answer());
    Map<String, UninterruptedStore> stores = new LinkedHashMap<>();
    for (String type : providers.keySet()) {
      stores.put(
          type, new UninterruptedStore(new PrefixStore(type + "/", store), time, written, setUp));
    }
    Runnable end = () -> stores.values().forEach(Store::close);
    GroupIdentity identity = new GroupIdentity(name, groupRank, globalRanks, settings, time);
    SetUpFailure failure = new SetUpFailure(monitor, identity, parent != null, end);
    EarlyFailures early = new EarlyFailures(end, failure);
    failure.start();
    if (parent != null) {
      parent.failures.whenFailing(end);
    }
    Map<String, BoundBackend> bound = new LinkedHashMap<>();
    try {
      if (parent == null) {
        new BackendAgreement(new UninterruptedStore(ownStore, time, null, setUp), rank, size)
            .require(providers);
      }
      stores.forEach(
          (type, typeStore) -> {
            BackendProvider provider = Objects.requireNonNull(providers.get(type));
            BoundBackend same = sharedOf(provider, bound.values());
            if (same != null) {
              bound.put(type, BoundBackend.of(provider, type, same.backend()));
              return;
            }
            BackendContext context =
                BackendContext.builder(
                        name, groupRank, globalRanks.size(), typeStore, time.left(deadlineNanos))
                    .globalRanks(globalRanks)
                    .device(type, deviceFor(provider, type))
                    .settings(settings)
                    .onFailure(early)
                    .time(time)
                    .build();
            bound.put(type, bind(provider, type, context, parent, ranks));
          });
      Group group =
          new Group(identity, groupTimeout, monitor, Collections.unmodifiableMap(bound), records);
      group.start();
      stores.values().forEach(UninterruptedStore::endSetUp);
      early.tell(group);
      return group;
    } catch (RuntimeException | Error e) {
      closeAll(bound);
      try {
        if (parent != null && parent.failures.isFailing()) {
          // The others learn of that failure, not of this one, which follows from it.
          throw e;
        }
        RuntimeException told =
            e instanceof RuntimeException exception
                ? exception
                : new BackendException("group " + name + " could not be set up: " + e, e);
        throw failure.of(early.causeOf(told));
      } finally {
        monitor.leave(name);
      }
    } finally {
      if (parent != null) {
        parent.failures.forget(end);
      }
    }
  }

  /** Finds the backend that serves all device kinds of its provider, if there is one. */
  private @Nullable BoundBackend sharedOf(
      BackendProvider provider, Collection<BoundBackend> bound) {
    if (provider.isOneForAllDevices()) {
      for (BoundBackend each : bound) {
        if (provider.equals(providers.get(each.deviceType()))) {
          return each;
        }
      }
    }
    return null;
  }

  private Device deviceFor(BackendProvider provider, String type) {
    Device own = device;
    boolean fits =
        own != null
            && (own.type().equals(type)
                || (provider.isOneForAllDevices() && provider.deviceTypes().contains(own.type())));
    return own != null && fits ? own : new Device(type, 0);
  }

  private BoundBackend bind(
      BackendProvider provider,
      String type,
      BackendContext context,
      @Nullable Group parent,
      List<Integer> ranks) {
    BoundBackend above = parent == null ? null : parent.backends.get(type);
    try {
      Backend backend = above == null ? null : above.backend().createSubgroup(context, ranks);
      if (backend == null) {
        backend = provider.create(context);
      }
      return BoundBackend.of(provider, type, backend);
    } catch (TuttiException e) {
      throw e;
    } catch (Exception | Error e) {
      throw new BackendException(
          "backend '"
              + provider.name()
              + "' could not be set up on rank "
              + context.rank()
              + "/"
              + context.size()
              + " of group "
              + context.group()
              + ": "
              + e,
          e);
    }
  }

  private static void closeAll(Map<String, BoundBackend> bound) {
    for (Backend backend : BoundBackend.distinct(bound.values())) {
      try {
        backend.close();
      } catch (RuntimeException | LinkageError e) {
        LOG.log(Level.DEBUG, "closing a backend after a failed set-up", e);
      }
    }
  }

  /** Keeps the first failure that a backend reports before its group exists, and ends set-up. */
  private static final class EarlyFailures implements BackendContext.FailureListener {
    private final Runnable end;
    private final SetUpFailure setUp;
    private @Nullable Group group;
    private @Nullable Throwable cause;
    private int rank;

    EarlyFailures(Runnable end, SetUpFailure setUp) {
      this.end = end;
      this.setUp = setUp;
    }

    @Override
    public void failed(Throwable newCause, int failedRank) {
      Group target;
      synchronized (this) {
        target = group;
        if (target == null && cause == null) {
          cause = newCause;
          rank = failedRank;
        }
      }
      if (target == null) {
        if (Blame.mayBeExplained(newCause)) {
          setUp.unlessExplained(this::endIfOpen);
        } else {
          end.run();
        }
      } else {
        target.peerFailed(newCause, failedRank);
      }
    }

    private void endIfOpen() {
      synchronized (this) {
        if (group != null) {
          return;
        }
      }
      end.run();
    }

    /**
     * Returns the failure that a backend reported if it closed the stores of a set-up, or else the
     * exception.
     */
    synchronized RuntimeException causeOf(RuntimeException e) {
      if (cause == null || !hasClosedStore(e)) {
        return e;
      }
      BackendException reported = new BackendException(OperationState.textOf(cause), cause);
      reported.addSuppressed(e);
      return reported;
    }

    private static boolean hasClosedStore(Throwable e) {
      Throwable t = e;
      while (t != null && !(t instanceof StoreClosedException)) {
        t = t.getCause();
      }
      return t != null;
    }

    void tell(Group newGroup) {
      Throwable early;
      synchronized (this) {
        group = newGroup;
        early = cause;
      }
      if (early != null) {
        newGroup.peerFailed(early, rank);
      }
    }
  }

  /** Takes part in c10d's barrier after set-up, if the setting asks for it. */
  void initBarrier(Group group) {
    if (!settings.get(RuntimeSettings.INIT_BARRIER)) {
      return;
    }
    String key = "store_based_barrier_key:0";
    String last = key + ":last_worker";
    if (rootStore.add(key, 1) == size) {
      rootStore.set(last, "1");
    }
    if (!new StoreWait(group.identity, group.failures, new UninterruptedStore(rootStore, time))
        .await(List.of(last), time.deadline(timeout))) {
      throw new RendezvousException(
          "rank "
              + rank
              + "/"
              + size
              + ": only "
              + rootStore.add(key, 0)
              + " ranks reached the barrier after set-up within "
              + timeout);
    }
  }

  /** Returns the ranks that have not joined, or none if that cannot be found out at once. */
  InitFailure.Missing missing() {
    if (monitor.isUnheard()) {
      int server = meeting.serverRank();
      if (server == rank) {
        return InitFailure.Missing.NONE;
      }
      return new InitFailure.Missing(
          server < 0 ? List.of() : List.of(server), Blame.ofSilence(server));
    }
    try {
      List<Integer> missing =
          BoundedCalls.call(
              time,
              "tutti-ask-" + rank,
              monitor.times().answer(),
              () ->
                  IntStream.range(0, size)
                      .filter(r -> !monitor.board().hasJoined(r))
                      .boxed()
                      .toList());
      return missing.isEmpty()
          ? InitFailure.Missing.NONE
          : new InitFailure.Missing(
              missing,
              PeerLateException.ranks(missing)
                  + " did not register in the store (PyTorch ranks never do)");
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot determine which ranks have not joined: {1}", rank, e);
      return InitFailure.Missing.NONE;
    }
  }

  /** Describes what keeps this rank while the ranks meet; waits for the store for a while. */
  String standing() {
    String missing = missing().text();
    return "rank %d/%d waits for the others at %s: %s"
        .formatted(
            rank,
            size,
            meeting.place(),
            missing.isEmpty() ? "all have registered there; their backends connect" : missing);
  }

  /** Frees what a closed group held; after the group of all ranks is closed, frees everything. */
  void groupClosed(Group group) {
    if (group.identity.name().equals("0")) {
      AgreedFailure failure = group.failures.verdict();
      close(failure != null, failure == null ? -1 : failure.failedRank());
    }
  }

  /** Frees everything. The rank that serves the store first lets the others finish. */
  void close(boolean failed, int failedRank) {
    monitor.leave();
    records.close();
    closeDebug();
    monitor.awaitReports(LEAVE);
    try {
      if (monitor.hasJoined() && !monitor.isUnheard()) {
        BoundedCalls.call(time, "tutti-leave-" + rank, LEAVE, () -> leave());
      }
      if (meeting.hostsStore()) {
        awaitOthers(failed, failedRank);
      }
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot announce in the store that it leaves: {1}", rank, e);
    }
    try {
      BoundedCalls.call(time, "tutti-leave-" + rank, RELEASE, this::release);
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot close the store in time: {1}", rank, e);
    }
  }

  private void closeDebug() {
    try (AutoCloseable _ = debug) {
      debug = null;
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot close its debug server: {1}", rank, e);
    }
  }

  private boolean release() {
    monitor.close();
    if (meeting.ownsStore()) {
      meeting.store().close();
    }
    return true;
  }

  private boolean leave() {
    ownStore.set("left/" + rank, "1");
    return true;
  }

  private void awaitOthers(boolean failed, int failedRank) {
    Duration limit = settings.get(RuntimeSettings.CLOSE_TIMEOUT);
    List<String> waited = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      if (r != rank && r != failedRank && ownStore.check(List.of("joined/" + r))) {
        waited.add("left/" + r);
      }
    }
    if (!waited.isEmpty()) {
      // After a failure, the others may still be asking what it was.
      Duration asking = monitor.times().answers();
      ownStore.await(waited, failed && limit.compareTo(asking) > 0 ? asking : limit);
    }
  }
}
