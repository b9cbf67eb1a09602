package dev.tutti.runtime.group;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.runtime.failure.AnswerTimes;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.membership.ChangeOutput;
import dev.tutti.runtime.membership.ChangeState;
import dev.tutti.runtime.membership.Membership;
import dev.tutti.runtime.membership.MembershipEntry;
import dev.tutti.runtime.membership.Ready;
import dev.tutti.runtime.membership.Rules;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.rendezvous.Rendezvous;
import dev.tutti.runtime.rendezvous.Rendezvous.Meeting;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import dev.tutti.spi.Wills;
import java.time.Duration;
import java.util.Map;

/** Joins a job that runs. */
final class GroupJoin {
  /** Any rank but 0, which may have to serve the store. */
  private static final int RANK = 1;

  private static final int SIZE = 2;

  private final GroupOptions options;
  private final Settings settings;
  private final Duration timeout;
  private final Time time;
  private final Map<String, BackendProvider> providers;

  private GroupJoin(GroupOptions options) {
    this.options = options.withRank(RANK).withSize(SIZE);
    this.settings = GroupInit.settingsOf(this.options);
    this.timeout = options.timeout().orElseGet(() -> settings.get(RuntimeSettings.TIMEOUT));
    this.time = options.time();
    this.providers = BackendChoice.of(options, settings);
    providers.forEach(
        (type, each) -> Generations.requireAble(each.name(), each.capabilities(type)));
  }

  /** Returns whether an elastic {@code tutti run} started this process, which has no rank yet. */
  static boolean isAsked(GroupOptions options) {
    Settings settings = options.settings();
    return options.rank().isEmpty()
        && options.initMethod().isEmpty()
        && settings.text(RuntimeSettings.RANK.name()).isEmpty()
        && settings.text(RuntimeSettings.WORLD_SIZE.name()).isEmpty()
        && settings.text("TORCHELASTIC_RUN_ID").isPresent();
  }

  /**
   * Joins a job, and waits until its members accept this process.
   *
   * @throws RendezvousException if they do not in time
   */
  static ProcessGroup join(GroupOptions options) {
    GroupJoin join = new GroupJoin(options);
    Meeting meeting = new Rendezvous(join.options, join.settings, join.timeout).open();
    boolean joined = false;
    try {
      ProcessGroup group = join.joinAt(meeting);
      joined = true;
      return group;
    } finally {
      if (!joined && meeting.ownsStore()) {
        meeting.store().close();
      }
    }
  }

  private ProcessGroup joinAt(Meeting meeting) {
    int earlier = JobStores.earlierAt(meeting.store(), settings);
    String name = Long.toHexString(time.random()) + Long.toHexString(time.random());
    Store own = new JobStores(meeting, earlier, settings, time).own;
    Membership membership = new Membership();
    Store will = new UninterruptedStore(own, time).duplicate();
    try {
      boolean _ = Wills.leave(will, JobMonitor.EVENT, new MembershipEntry.Withdrawn(name).encode());
      await(own, membership, name, meeting);
      Meeting asMember = asMember(meeting, membership.numberOf(name), membership.members().size());
      Job job =
          new Job(
              asMember,
              earlier,
              providers,
              options.device().orElse(null),
              settings,
              timeout,
              time,
              membership);
      return begin(job);
    } finally {
      will.close();
    }
  }

  private ProcessGroup begin(Job job) {
    boolean joined = false;
    try {
      job.start();
      Group group = new Generations(job).begin(timeout);
      joined = true;
      return new DefaultProcessGroup(group, job);
    } finally {
      if (!joined) {
        job.close(true, -1);
      }
    }
  }

  /** Waits to become a member. */
  private void await(Store own, Membership membership, String name, Meeting meeting) {
    Rules rules = new Rules(1, Integer.MAX_VALUE, 0, Integer.MAX_VALUE, Deadlines.nanos(timeout));
    long answer = Deadlines.nanos(AnswerTimes.of(settings).answer());
    ChangeState state =
        new ChangeState(membership, -1, name, -1, rules, Ready.PLAIN, answer, time.nanoTime());
    Store store = new UninterruptedStore(own, time);
    switch (new ChangeDriver(store, time, state, name).run()) {
      case ChangeOutput.Enter _ -> {}
      case ChangeOutput.Expel(String why) ->
          throw new RendezvousException(
              "the job at %s took this process and went on without it: %s"
                  .formatted(meeting.place(), why));
      default ->
          throw new RendezvousException(
              ("no member of the job at %s asked this process to join within %s; generation %d"
                      + " runs with %d members, which have to call grow() or reconfigure()")
                  .formatted(
                      meeting.place(),
                      timeout,
                      membership.generation(),
                      membership.members().size()));
    }
  }

  private static Meeting asMember(Meeting meeting, int number, int size) {
    return new Meeting(
        meeting.store(),
        number,
        size,
        meeting.ownsStore(),
        false,
        meeting.serverRank(),
        meeting.place(),
        meeting.server());
  }
}
