package dev.tutti.runtime.group;

import dev.tutti.Device;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.runtime.failure.AgreedFailure;
import dev.tutti.runtime.failure.AnswerTimes;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.failure.JobBoard;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.runtime.rendezvous.InitFailure;
import dev.tutti.runtime.rendezvous.Rendezvous;
import dev.tutti.runtime.rendezvous.StoreWait;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.rendezvous.WrittenKeys;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.status.StatusQuery;
import dev.tutti.runtime.view.LiveJob;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import dev.tutti.store.PrefixStore;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The state that the groups of one rank share: the store, the backends' providers, the monitor. */
final class Job {
  private static final System.Logger LOG = System.getLogger(Job.class.getName());

  private static final Duration LEAVE = Duration.ofSeconds(2);
  private static final Duration RELEASE = Duration.ofSeconds(2);

  final int rank;
  final int size;
  final Settings settings;
  final Duration timeout;
  final Time time;
  final Rendezvous.Meeting meeting;

  /** The providers by kind of device. */
  final Map<String, BackendProvider> providers;

  /** The device of this rank, if it has one of its own. */
  final @Nullable Device device;

  final JobStores stores;
  final JobMonitor monitor;

  /** The flight records of this rank's groups. */
  final FlightRecords records;

  /** The members of its group of all ranks. */
  final Members members;

  private volatile @Nullable AutoCloseable debug;

  /**
   * Creates the state that the groups of a rank share.
   *
   * @param earlier how many jobs at the store of the meeting are over
   * @param timeout the deadline of what the ranks do together
   * @param membership who its members are
   */
  Job(
      Rendezvous.Meeting meeting,
      int earlier,
      Map<String, BackendProvider> providers,
      @Nullable Device device,
      Settings settings,
      Duration timeout,
      Time time,
      Membership membership) {
    this.meeting = meeting;
    this.providers = providers;
    this.device = device;
    this.rank = meeting.rank();
    this.size = meeting.size();
    this.settings = settings;
    this.timeout = timeout;
    this.time = time;
    this.records = new FlightRecords(rank, settings, time);
    this.stores = new JobStores(meeting, earlier, settings, time);
    this.monitor =
        new JobMonitor(
            new UninterruptedStore(stores.own, time),
            rank,
            meeting.serverRank(),
            AnswerTimes.of(settings),
            time);
    this.members = new Members(membership);
  }

  void start() {
    monitor.join();
    if (members.log.read() > 0) {
      monitor.skip();
    }
    JobStatus status = new JobStatus(rank, size, records);
    monitor.start(status::zipped);
    records.open();
    LiveJob all = new LiveJob(() -> StatusQuery.ofJob(stores.own.duplicate(), size, time), time);
    debug = JobDebug.start(status, all, settings, providers.values(), time);
  }

  /** Starts to note the keys that this rank writes for a call that makes groups. */
  WrittenKeys noteKeys(String call, int ranks) {
    return new WrittenKeys(stores.own, call, ranks);
  }

  /**
   * Lets the last rank delete the keys of a call, which this rank needs no more; does nothing if
   * the store does not answer.
   */
  void release(WrittenKeys written) {
    if (!monitor.isUnheard()) {
      attempt(monitor.times().answer(), written::release, "delete the keys of a closed group");
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
    written.add(stores.own, JobBoard.progressKey(name, rank));
    long barriers = closed.monitoredBarriers.get();
    if (barriers > 0 && closed.identity.rank() == 0) {
      Store barrier = new PrefixStore("group/" + name, stores.own);
      StoreMonitoredBarrier.keys(barriers, closed.identity.size())
          .forEach(key -> written.add(barrier, key));
    }
    release(written);
  }

  private void call(Duration limit, Runnable call) throws Exception {
    BoundedCalls.run(time, "tutti-ask-" + rank, limit, call);
  }

  /** Makes a call to the store, but not for longer than a limit; logs why it could not be made. */
  private void attempt(Duration limit, Runnable call, String what) {
    try {
      call(limit, call);
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot {1}: {2}", rank, what, e);
    }
  }

  /** Takes part in c10d's barrier after set-up, if the setting is on. */
  void initBarrier(Group group) {
    if (!settings.get(RuntimeSettings.INIT_BARRIER)) {
      return;
    }
    String key = "store_based_barrier_key:0";
    String last = key + ":last_worker";
    if (stores.root.add(key, 1) == size) {
      stores.root.set(last, "1");
    }
    if (!new StoreWait(group.identity, group.failures, new UninterruptedStore(stores.root, time))
        .await(List.of(last), time.deadline(timeout))) {
      throw new RendezvousException(
          "rank %d/%d: only %d ranks reached the barrier after set-up within %s"
              .formatted(rank, size, stores.root.add(key, 0), Printable.time(timeout)));
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
    if (members.isLastOfAll(group)) {
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
        call(LEAVE, () -> stores.own.set("left/" + rank, "1"));
      }
      if (meeting.hostsStore()) {
        awaitOthers(failed, failedRank);
      }
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot announce in the store that it leaves: {1}", rank, e);
    }
    attempt(RELEASE, this::closeStore, "close the store in time");
  }

  private void closeDebug() {
    try (AutoCloseable _ = debug) {
      debug = null;
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot close its debug server: {1}", rank, e);
    }
  }

  private void closeStore() {
    monitor.close();
    if (meeting.ownsStore()) {
      meeting.store().close();
    }
  }

  private void awaitOthers(boolean failed, int failedRank) {
    Duration limit = settings.get(RuntimeSettings.CLOSE_TIMEOUT);
    List<String> waited = new ArrayList<>();
    for (int r : members.numbers()) {
      if (r != rank && r != failedRank && stores.own.check(List.of("joined/" + r))) {
        waited.add("left/" + r);
      }
    }
    if (!waited.isEmpty()) {
      // After a failure, the others may still be asking what it was.
      Duration asking = monitor.times().answers();
      stores.own.await(waited, failed && limit.compareTo(asking) > 0 ? asking : limit);
    }
  }
}
