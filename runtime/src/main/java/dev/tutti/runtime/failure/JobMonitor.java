package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.cpu.wait.Latch;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Newcomers;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.runtime.status.Inquiry;
import dev.tutti.runtime.status.StatusAnswers;
import dev.tutti.spi.Time;
import dev.tutti.spi.Wills;
import dev.tutti.store.PrefixStore;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Notifies all ranks of a job of failures, in the same order on every rank.
 *
 * <p>One instance serves all groups of a rank. The events form a log in the store; every rank reads
 * the log from the start.
 */
public final class JobMonitor implements AutoCloseable {
  /*
   * The log is the keys event/1, event/2, ...; LogEntry says what each holds. Each key is written
   * once, by compare-and-set from absent. The log therefore has no gaps and a single order, and the
   * first event of a group is the same on every rank. A rank writes its event before it drops the
   * connections to its peers: a rank that sees a connection end as a consequence finds the cause
   * already in the log.
   *
   * If the store can detect that a process ended, the loss of the rank that serves it shows in the
   * end of the store, which each rank sees for itself. Each rank also leaves an event for the case
   * of its loss, as its will. The will names no group, only the rank among all, and fails every
   * group that this rank is in.
   *
   * What this rank does about all that is decided by JobState, a step for each input. Whoever offers
   * an input queues it and counts it in "offered"; who counts the first one runs the steps and what
   * follows from them until the count is 0 again. So one thread at a time runs the state, in the
   * order of the inputs, and sees what the thread before it wrote, because both changed the count.
   * Nothing that a step leads to waits: calls of the store and of backends get threads of their own
   * (tutti-ask appends, answers and collects, tutti-down ends a group), and their results come back
   * as inputs. Time passes for the state when the watchdog or a thread that waits for a
   * verdict calls tick().
   */
  private static final System.Logger LOG = System.getLogger(JobMonitor.class.getName());

  /** The start of the keys of the log. */
  public static final String EVENT = "event/";

  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final Store writeStore;
  private final int rank;
  private final int serverRank;
  private final AnswerTimes times;
  private final Time time;
  private final Watchdog watchdog;
  private final LogReader reader;
  private final JobState state;
  private final Queue<JobInput> inputs = new ConcurrentLinkedQueue<>();
  private final AtomicInteger offered = new AtomicInteger();
  private final Map<String, Member> members = new ConcurrentSkipListMap<>();
  private final Map<Question, Consumer<String>> waiting = new ConcurrentHashMap<>();
  private final JobBoard board;
  private final Questions questions;
  private volatile @Nullable StatusAnswers answers;
  private volatile boolean joined;
  private volatile boolean unheard;
  private volatile boolean appending;
  private volatile long nextLimit = Long.MAX_VALUE;
  private volatile @Nullable Long generationSince;

  /** A group that this rank is in. */
  private record Member(List<Integer> globalRanks, MonitoredGroup group) {}

  /**
   * Creates a monitor.
   *
   * @param serverRank the rank that serves the store; -1 if none does
   * @param times how long to wait for answers
   * @param time by which this rank waits
   */
  public JobMonitor(Store store, int rank, int serverRank, AnswerTimes times, Time time) {
    this.time = time;
    this.watchdog = Watchdog.of(time);
    this.times = times;
    this.reader = new LogReader(store.duplicate(), rank, time, this::offer);
    this.writeStore = store.duplicate();
    this.board = new JobBoard(writeStore, rank, times, time);
    this.questions = new Questions(writeStore, board, rank, times, time);
    this.rank = rank;
    this.serverRank = serverRank;
    this.state = new JobState(rank, serverRank, times, watchdog.runningNanos());
  }

  /** Lets the reader of a process that joins late begin where the log does; before the start. */
  public void skip() {
    reader.skip();
  }

  /**
   * Starts to read the log.
   *
   * @param status reports where this rank stands to those who ask from outside, on threads of this
   *     monitor
   */
  public void start(Supplier<byte[]> status) {
    answers = new StatusAnswers(writeStore, rank, status);
    reader.start();
  }

  /**
   * Passes to a group what the state decides about it, from now on, including about a failure that
   * came earlier.
   *
   * @param isOpen whether its set-up is over
   */
  void join(GroupIdentity identity, MonitoredGroup group, boolean isOpen) {
    members.put(identity.name(), new Member(identity.globalRanks(), group));
    offer(new JobInput.Joined(identity.name(), identity.globalRanks(), isOpen));
  }

  /**
   * Notes that a generation is set up: what its members do is no reaction to what came before, so
   * earlier standstills of this rank say nothing about them.
   */
  public void beginGeneration() {
    generationSince = time.nanoTime();
  }

  /** Returns whether this rank stood still until recently, in the generation that it is in. */
  public boolean stoodStill() {
    return watchdog.stoodStill(times.standstill(), generationSince);
  }

  /** Notifies a group no more. */
  public void leave(String group) {
    members.remove(group);
    waiting.keySet().removeIf(question -> question.group().equals(group));
    offer(new JobInput.Left(group));
  }

  /** Notifies the other ranks of a failure, unless they already have one in that group. */
  public void report(FailureEvent event) {
    offer(new JobInput.Failed(event));
  }

  /**
   * Waits for the reason why a peer of a group in set-up ended its connection, and reports the end
   * if there is none. Does not block.
   */
  void explain(FailureEvent event) {
    offer(new JobInput.PeerGone(event));
  }

  /** Notifies the members of a group that this rank does not join it. */
  public void refuse(FailureEvent event) {
    offer(new JobInput.Refused(event));
  }

  /** Notes that the store has just failed to answer, so that it is not asked again at once. */
  public void noteSilence() {
    offer(new JobInput.Silence());
  }

  /**
   * Waits until the store has taken the reports that it did not take in time, so that they are not
   * lost with the connection to it.
   *
   * @param limit the maximum time to wait
   */
  public void awaitReports(Duration limit) {
    long deadline = time.deadline(limit);
    while ((offered.get() > 0 || appending) && time.nanoTime() - deadline < 0) {
      time.park(this, LOOK_NANOS);
    }
  }

  /** Returns how long to wait for answers. */
  public AnswerTimes times() {
    return times;
  }

  /** Returns whether the store did not take a failure, so that no other rank can be asked. */
  public boolean isUnheard() {
    return unheard;
  }

  /** Returns the rank of a group that serves the store; -1 if none does. */
  public int serverOf(GroupIdentity group) {
    return group.globalRanks().indexOf(serverRank);
  }

  /** Returns what the ranks write for each other beside the log. */
  public JobBoard board() {
    return board;
  }

  /** Returns whether a failure was reported below a prefix of a store, without its slash. */
  public static boolean hasFailed(Store store, String prefix) {
    for (long number = LogStart.read(new PrefixStore(prefix, store)).first(); ; number++) {
      String key = prefix + "/" + key(number);
      if (!store.check(List.of(key))) {
        return false;
      }
      if (LogEntry.isFailure(store.get(key))) {
        return true;
      }
    }
  }

  /** Returns the rank whose end an entry of the log reports; -1 if it reports none. */
  public static int lostRank(byte[] entry) {
    try {
      return LogEntry.decode(entry) instanceof LogEntry.Failed(FailureEvent event)
              && event.isOfAllGroups()
          ? event.failedRank()
          : -1;
    } catch (IllegalArgumentException e) {
      return -1;
    }
  }

  /** Returns the key of an entry of the log. */
  public static String key(long number) {
    return EVENT + number;
  }

  /** Returns the processes that wait to join, as far as the log was read. */
  public Newcomers newcomers() {
    return reader.newcomers();
  }

  /** Returns whether this rank takes part. */
  public boolean hasJoined() {
    return joined;
  }

  /**
   * Notes that this rank takes part.
   *
   * @throws dev.tutti.RendezvousException if a process already takes part as this rank
   */
  public void join() {
    board.join();
    joined = true;
    if (Wills.leave(writeStore, EVENT, FailureEvent.lost(rank).encode())) {
      reader.keepsWills();
    }
  }

  /** Notes that this rank is about to leave: from now on the store may go away. */
  public void leave() {
    reader.leave();
  }

  // Time

  /**
   * Lets time pass for the state.
   *
   * @return how long it may take until the next call, in nanoseconds
   */
  long tick() {
    long left = leftNanos();
    if (left <= 0) {
      offer(new JobInput.Tick());
    }
    return Math.max(left, LOOK_NANOS);
  }

  private long leftNanos() {
    long limit = nextLimit;
    return limit == Long.MAX_VALUE ? Long.MAX_VALUE / 2 : limit - watchdog.runningNanos();
  }

  /**
   * Waits for a latch that opens once a group is settled, even if interrupted.
   *
   * @return whether it is open; false after the longest time that the state may take
   */
  boolean await(Latch settled) {
    long most = Deadlines.nanos(times.verdict());
    long since = watchdog.runningNanos();
    return Uninterrupted.await(
        () -> {
          long left = since + most - watchdog.runningNanos();
          while (left > 0 && !settled.await(time.nanoTime() + Math.min(left, tick()))) {
            left = since + most - watchdog.runningNanos();
          }
          return left > 0;
        });
  }

  // Steps

  private void offer(JobInput input) {
    inputs.add(input);
    if (offered.getAndIncrement() > 0) {
      return;
    }
    do {
      try {
        step(inputs.remove());
      } catch (RuntimeException | Error e) {
        LOG.log(Level.ERROR, "rank " + rank + ": a step of the failure log failed", e);
      }
    } while (offered.decrementAndGet() > 0);
  }

  private void step(JobInput input) {
    List<JobOutput> outputs = state.step(watchdog.runningNanos(), stoodStill(), input);
    unheard = state.isUnheard();
    appending = state.isAppending();
    nextLimit = state.nextLimit();
    if (nextLimit != Long.MAX_VALUE) {
      watchdog.expect(time.nanoTime() + leftNanos());
    }
    outputs.forEach(this::run);
  }

  private void run(JobOutput output) {
    // Not a switch: see JobState.
    if (output instanceof JobOutput.Append append) {
      start("tutti-ask-" + rank, () -> append(append));
    } else if (output instanceof JobOutput.Fail(FailureEvent event)) {
      Member member = members.get(event.group());
      if (member != null) {
        member.group.failing(event);
      }
    } else if (output instanceof JobOutput.Ask(Evidence known, boolean publishes, Duration limit)) {
      ask(known, (member, group) -> ask(member, group, known, publishes, limit));
    } else if (output instanceof JobOutput.Probe(String group)) {
      start("tutti-ask-" + group + "-" + rank, () -> probe(group));
    } else if (output instanceof JobOutput.LookUp(Evidence known)) {
      ask(
          known,
          (member, group) -> collect(group, () -> board.withClose(known, member.globalRanks)));
    } else if (output instanceof JobOutput.Settle(Evidence evidence, AgreedFailure verdict)) {
      Member member = members.get(evidence.event().group());
      if (member != null) {
        member.group.settle(evidence, verdict);
      }
    } else if (output instanceof JobOutput.Answer(long number, String group)) {
      start("tutti-ask-" + group + "-" + rank, () -> answer(number, group));
    } else if (output instanceof JobOutput.Find(Question question, long number, Evidence known)) {
      ask(known, (member, _) -> find(member, question, number, known));
    } else if (output instanceof JobOutput.Adopt(Question question, long number)) {
      start("tutti-ask-" + question.group() + "-" + rank, () -> adopt(question, number));
    } else if (output instanceof JobOutput.Tell(long number, String finding)) {
      start(
          "tutti-ask-" + rank,
          () -> tell("publish a finding", () -> questions.tell(number, finding)));
    } else if (output instanceof JobOutput.Explain(Question question, String finding)) {
      Consumer<String> log = waiting.remove(question);
      if (log != null) {
        start("tutti-ask-" + question.group() + "-" + rank, () -> log.accept(finding));
      }
    } else if (output instanceof JobOutput.Report(Inquiry inquiry)) {
      StatusAnswers answering = answers;
      if (answering != null) {
        start("tutti-ask-" + rank, () -> answering.serve(inquiry));
      }
    } else {
      throw new IllegalStateException("unknown output: " + output);
    }
  }

  private void start(String name, Runnable body) {
    Thread _ = time.start(name, body);
  }

  private void append(JobOutput.Append append) {
    JobInput result;
    long lost = watchdog.lostNanos();
    try {
      Store.Swap swap = writeStore.compareSet(key(append.number()), null, append.entry().encode());
      byte[] there = swap.value();
      result =
          swap.stored() || there == null
              ? new JobInput.Written(append.number())
              : new JobInput.Taken(append.number(), LogEntry.decode(there));
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot notify the other ranks: {1}", rank, e);
      result = watchdog.lostNanos() > lost ? new JobInput.Missed() : new JobInput.Unwritten();
    }
    offer(result);
  }

  private void probe(String group) {
    if (attempt("reach the store", () -> board.hasJoined(rank)) != null) {
      offer(new JobInput.Reached(group));
    }
  }

  /** Makes calls to the store; returns null, and logs why, if they fail. */
  private <T> @Nullable T attempt(String what, Supplier<T> calls) {
    try {
      return calls.get();
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot {1}: {2}", rank, what, e);
      return null;
    }
  }

  private void tell(String what, Runnable calls) {
    Boolean _ =
        attempt(
            what,
            () -> {
              calls.run();
              return true;
            });
  }

  /** What is done for one of the groups. */
  private interface Step {
    void run(Member member, String group);
  }

  private void ask(Evidence known, Step step) {
    String group = known.event().group();
    Member member = members.get(group);
    if (member != null) {
      start("tutti-ask-" + group + "-" + known.self(), () -> step.run(member, group));
    }
  }

  private void ask(
      Member member, String group, Evidence known, boolean publishes, @Nullable Duration limit) {
    if (publishes) {
      RankProgress standing = member.group.answer(known.event());
      tell("publish where it stands", () -> board.publish(group, standing.encode()));
    }
    if (limit != null) {
      long deadline = watchdog.runningNanos() + Deadlines.nanos(limit);
      collect(
          group,
          () ->
              board.collect(
                  known, member.globalRanks, each -> JobBoard.progressKey(group, each), deadline));
    }
  }

  private void collect(String group, Supplier<Evidence> evidence) {
    Evidence all = attempt("find out who is missing in group " + group, evidence);
    offer(new JobInput.Collected(group, all));
  }

  // Operations that wait for long

  /**
   * Asks the ranks of a group where they stand while an operation waits, or waits for the finding
   * of another rank that asks the same. Does not block.
   *
   * @param log receives the finding in words, on a thread of its own
   */
  void whatKeeps(Question question, Consumer<String> log) {
    waiting.put(question, log);
    offer(new JobInput.Waits(question));
  }

  private void find(Member member, Question question, long number, Evidence known) {
    Evidence all =
        attempt(
            "ask what keeps an operation",
            () -> questions.collect(number, known, member.globalRanks));
    offer(new JobInput.Answered(question, number, all));
  }

  private void adopt(Question question, long number) {
    String finding = attempt("read the finding of another rank", () -> questions.findingOf(number));
    offer(new JobInput.Adopted(question, finding));
  }

  private void answer(long number, String group) {
    Member member = members.get(group);
    if (member != null) {
      tell("answer where it stands", () -> questions.answer(number, standing(member.group, group)));
    }
  }

  /** Returns where this rank stands in one of its groups, and in what it waits in the others. */
  private RankProgress standing(MonitoredGroup group, String name) {
    RankProgress standing = group.standing();
    StringJoiner elsewhere = new StringJoiner(", ");
    members.forEach(
        (otherName, other) -> {
          RankProgress there = otherName.equals(name) ? null : other.group.standing();
          if (there != null && !there.pending().isEmpty()) {
            String what = there.nextWait(Set.of()).describe();
            elsewhere.add("in group " + otherName + " it waits in " + what);
          }
        });
    if (!standing.elsewhere().isEmpty()) {
      elsewhere.add(standing.elsewhere());
    }
    return standing.with(elsewhere.toString());
  }

  @Override
  public void close() {
    reader.close();
    writeStore.close();
  }
}
