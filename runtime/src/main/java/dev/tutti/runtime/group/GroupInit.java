package dev.tutti.runtime.group;

import dev.tutti.CollectiveException;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.StoreConnectionException;
import dev.tutti.runtime.launch.JvmThreads;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.runtime.rendezvous.InitFailure;
import dev.tutti.runtime.rendezvous.Rendezvous;
import dev.tutti.runtime.rendezvous.SetUpReports;
import dev.tutti.runtime.settings.NoRestart;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.settings.UnknownSettings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerLostException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Joins a job: finds the backends, the store and the other ranks, in this order. */
final class GroupInit {
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final GroupOptions options;
  private final Settings settings;
  private final Duration timeout;
  private final long deadline;
  private final Map<String, BackendProvider> providers;

  private GroupInit(GroupOptions options) {
    this.options = options;
    this.settings = settingsOf(options);
    this.timeout = options.timeout().orElseGet(() -> settings.get(RuntimeSettings.TIMEOUT));
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    this.providers = BackendChoice.of(options, settings);
    UnknownSettings.warn(settings, providers.values());
    JvmThreads.warn(settings);
    this.deadline = options.time().deadline(timeout);
  }

  /**
   * Joins a job.
   *
   * @param options how to join
   * @return the group of all ranks
   * @throws IllegalArgumentException if a setting of the runtime cannot be parsed
   */
  static ProcessGroup init(GroupOptions options) {
    return init(
        options, (settings, standing) -> SetUpReports.begin(settings, options.time(), standing));
  }

  /** Joins a job; reports are begun by a function that gets the settings and where this stands. */
  static ProcessGroup init(
      GroupOptions options, BiFunction<Settings, Supplier<String>, SetUpReports> reporting) {
    GroupInit init = new GroupInit(options);
    // A store keeps its time-out for later calls, so each store is opened with the full one.
    Rendezvous rendezvous = new Rendezvous(options, init.settings, init.timeout);
    try (SetUpReports reports = reporting.apply(init.settings, rendezvous::standing)) {
      Job job = init.meet(rendezvous);
      reports.waitFor(job::standing);
      return init.join(job);
    }
  }

  private ProcessGroup join(Job job) {
    InitFailure failures = new InitFailure(job.meeting, timeout);
    Group group = null;
    try {
      job.start();
      List<Integer> all = IntStream.range(0, job.size).boxed().toList();
      group = new GroupSetUp(job, "0", all, deadline, null, true, null).run(timeout);
      job.initBarrier(group);
      return new DefaultProcessGroup(group, job);
    } catch (RuntimeException e) {
      InitFailure.Missing missing = job.missing();
      leave(job, group, failedRank(e));
      throw failures.of(e, missing);
    } catch (Error e) {
      leave(job, group, -1);
      throw e;
    }
  }

  private static void leave(Job job, @Nullable Group group, int failedRank) {
    if (group != null) {
      group.close();
    }
    job.close(true, failedRank);
  }

  static Settings settingsOf(GroupOptions options) {
    try {
      RuntimeSettings.check(options.settings());
      return Rendezvous.completed(options);
    } catch (IllegalArgumentException | RendezvousException e) {
      NoRestart.tell(options.settings());
      throw e;
    }
  }

  /**
   * Returns the rank that a failure names, which no other rank need wait for; -1 if it names none.
   */
  private static int failedRank(Throwable failure) {
    int named = -1;
    for (Throwable t = failure; t != null && named < 0; t = t.getCause()) {
      named =
          t instanceof CollectiveException agreed
              ? agreed.failedRank().orElse(-1)
              : PeerLostException.rankIn(t);
    }
    return named;
  }

  /**
   * Meets the other ranks, but not at the store of a job that is over and whose server is about to
   * end.
   */
  private Job meet(Rendezvous rendezvous) {
    while (true) {
      RuntimeException reason;
      try {
        Rendezvous.Meeting meeting = rendezvous.open();
        boolean mayEnd = rendezvous.isServedByOther();
        Job job = jobAt(meeting, mayEnd);
        if (job != null) {
          return job;
        }
        reason = servedStill(meeting);
      } catch (RendezvousException e) {
        if (!rendezvous.isServedByOther() || !(e.getCause() instanceof StoreConnectionException)) {
          throw e;
        }
        reason = e;
      }
      rendezvous.attemptFailed(String.valueOf(reason.getMessage()));
      if (deadline - options.time().nanoTime() <= 0) {
        throw reason;
      }
      options.time().park(options, RETRY_NANOS);
    }
  }

  /**
   * Joins the job that meets at a store, or returns null if that job is over and the store is about
   * to end.
   */
  private @Nullable Job jobAt(Rendezvous.Meeting meeting, boolean mayEnd) {
    boolean joined = false;
    try {
      int earlier = JobStores.earlierAt(meeting, settings);
      if (earlier > 0 && mayEnd) {
        return null;
      }
      Device device = options.device().orElse(null);
      Membership first = new Membership(meeting.size());
      Job job =
          new Job(meeting, earlier, providers, device, settings, timeout, options.time(), first);
      joined = true;
      return job;
    } catch (RuntimeException e) {
      throw new InitFailure(meeting, timeout).of(e, InitFailure.Missing.NONE);
    } finally {
      if (!joined && meeting.ownsStore()) {
        meeting.store().close();
      }
    }
  }

  private static RendezvousException servedStill(Rendezvous.Meeting meeting) {
    return new RendezvousException(
        ("rank %d/%d left the job at %s, but %s still serves its store because its group was not"
                + " closed there")
            .formatted(meeting.rank(), meeting.size(), meeting.place(), meeting.server()));
  }
}
