package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.ExpelledException;
import dev.tutti.OpType;
import dev.tutti.ReconfigureOptions;
import dev.tutti.Store;
import dev.tutti.TooFewRanksException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.AnswerTimes;
import dev.tutti.runtime.membership.ChangeOutput;
import dev.tutti.runtime.membership.ChangeState;
import dev.tutti.runtime.membership.Ready;
import dev.tutti.runtime.membership.Rules;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.rendezvous.UninterruptedStore.SetUp;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Leads a process of a job from one generation to the next. */
final class Generations {
  private static final System.Logger LOG = System.getLogger(Generations.class.getName());

  private final Job job;
  private final Members members;
  private boolean hasLeft;

  Generations(Job job) {
    this.job = job;
    this.members = job.members;
  }

  /**
   * Continues in the next generation, in place of a group.
   *
   * @param barrier waits until all ranks have ended their operations, for some time at most
   * @return the group of all ranks
   * @throws TuttiException if this process does not go on
   */
  Group reconfigure(Group group, ReconfigureOptions options, Consumer<Duration> barrier) {
    synchronized (members) {
      group.ensureOpen(OpType.RECONFIGURE);
      requireAble(group);
      Duration timeout = options.timeout().orElseGet(group::timeout);
      endOperations(group, () -> barrier.accept(timeout));
      Rules rules =
          new Rules(
              options.fewest(),
              options.most(),
              options.fewestJoining(),
              options.mostJoining(),
              Deadlines.nanos(timeout));
      Ready ready = new Ready(numbersOf(group, group.failures.lost()), new TreeSet<>());
      return goOn(group, rules, ready, timeout, group.timeout());
    }
  }

  /**
   * Waits until no member is in an operation any more, or the ranks have agreed why the group
   * failed.
   */
  private static void endOperations(Group group, Runnable barrier) {
    if (!group.failures.isFailing()) {
      try {
        barrier.run();
      } catch (TuttiException e) {
        if (!group.failures.isFailing()) {
          throw e;
        }
      }
    }
    var _ = group.failures.await();
  }

  private void requireAble(Group group) {
    if (!members.isLastOfAll(group)) {
      throw new UnsupportedOperationException(
          "reconfigure of group %s: call it on the group of all ranks, then create this one anew"
              .formatted(group.identity.name()));
    }
    for (BoundBackend bound : group.backends.values()) {
      if (bound.backend().hasForeignRanks()) {
        throw new UnsupportedOperationException(
            "reconfigure of group %s, which has PyTorch ranks: restart the job instead"
                .formatted(group.identity.name()));
      }
      requireAble(bound.name(), bound.capabilities());
      Optional<String> reason = bound.backend().reasonAgainstReconfigure();
      if (reason.isPresent()) {
        throw new UnsupportedOperationException(
            "rank %s cannot continue after group %s: %s"
                .formatted(group.identity.rank(), group.identity.name(), reason.orElseThrow()));
      }
    }
  }

  /** Refuses a backend that cannot change the members of a group. */
  static void requireAble(String backend, Capabilities capabilities) {
    if (!capabilities.has(Feature.RECONFIGURE)) {
      throw new UnsupportedOperationException(
          ("backend '%s' cannot change the members of a group: restart the job instead, or use one"
                  + " whose capabilities include RECONFIGURE")
              .formatted(backend));
    }
  }

  /**
   * Returns whether this process cannot be in the next generation, so that the others continue
   * without it.
   */
  boolean hasLeft() {
    return hasLeft;
  }

  /** Sets up the first generation of a process that has joined. */
  Group begin(Duration timeout) {
    Rules rules = new Rules(1, Integer.MAX_VALUE, 0, Integer.MAX_VALUE, Deadlines.nanos(timeout));
    synchronized (members) {
      members.enter();
      return goOn(null, rules, Ready.PLAIN, timeout, timeout);
    }
  }

  /**
   * Continues until a generation is set up.
   *
   * @param old the group before; null if this process is already a member of the next one
   */
  private Group goOn(
      @Nullable Group old, Rules rules, Ready ready, Duration timeout, Duration ofOperations) {
    long giveUp = job.time.deadline(timeout.multipliedBy(2));
    Ready says = ready;
    boolean isNext = old == null;
    while (true) {
      if (!isNext) {
        change(rules, says, timeout);
      }
      isNext = false;
      GroupSetUp setUp = prepare(timeout);
      try {
        return begin(setUp.run(ofOperations));
      } catch (RuntimeException e) {
        if (setUp.hasFailedHere()) {
          hasLeft = true;
          throw new BackendException(
              ("this process cannot continue as rank %d of group %s, and the others continue"
                      + " without it: %s")
                  .formatted(
                      members.numbers().indexOf(job.rank),
                      members.group(),
                      OperationState.textOf(e)),
              e);
        }
        if (giveUp - job.time.nanoTime() <= 0) {
          throw e;
        }
        LOG.log(Level.INFO, "group " + members.group() + " is set up again: " + e.getMessage());
        says =
            new Ready(new TreeSet<>(), numbersOf(old, old == null ? List.of() : old.unreached()));
      }
    }
  }

  private static SortedSet<Integer> numbersOf(@Nullable Group group, Collection<Integer> ranks) {
    SortedSet<Integer> numbers = new TreeSet<>();
    if (group != null) {
      ranks.forEach(rank -> numbers.add(group.identity.globalRanks().get(rank)));
    }
    return numbers;
  }

  private void change(Rules rules, Ready ready, Duration timeout) {
    AnswerTimes times = job.monitor.times();
    long answer = Deadlines.nanos(times.answer());
    long deadline = job.time.deadline(timeout.multipliedBy(3));
    SetUp limits = new SetUp(members.group(), job.rank, deadline, times.answer());
    Store store = new UninterruptedStore(job.stores.own, job.time, null, limits);
    long now = job.time.nanoTime();
    long generation = members.generation();
    ChangeState state =
        new ChangeState(members.log, job.rank, "", generation, rules, ready, answer, now);
    switch (new ChangeDriver(store, job.time, state, String.valueOf(job.rank)).run()) {
      case ChangeOutput.Enter _ -> members.enter();
      case ChangeOutput.Expel(String why) ->
          throw new ExpelledException(
              ("this process was rank %d of group %s, and generation %d continues without it: %s;"
                      + " call ProcessGroup.join() to join again")
                  .formatted(
                      members.numbers().indexOf(job.rank),
                      members.group(),
                      members.log.generation(),
                      why));
      case ChangeOutput.Refuse(String why) ->
          throw new TooFewRanksException(
              "group %s has not changed: %s".formatted(members.group(), why));
      case ChangeOutput other -> throw new IllegalStateException("not an end: " + other);
    }
  }

  private GroupSetUp prepare(Duration timeout) {
    long deadline = job.time.deadline(timeout);
    return new GroupSetUp(job, members.group(), members.numbers(), deadline, null, true, null);
  }

  private Group begin(Group group) {
    members.begin();
    job.monitor.beginGeneration();
    if (group.identity.rank() == 0) {
      OldKeys old = members.oldKeys(job.stores);
      Thread _ = job.time.start("tutti-ask-" + job.rank, old::delete);
    }
    return group;
  }
}
