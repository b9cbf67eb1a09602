package dev.tutti.runtime.failure;

import static dev.tutti.runtime.operation.Deadlines.nanos;

import dev.tutti.runtime.failure.FailureEvent.Kind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What a rank knows of the failures of its job, and what it does about them. */
final class JobState {
  /*
   * One group, from its first failure on:
   *
   *   OPEN ──own failure──▶ REPORTING ──Written, or an entry of another rank──▶ ASKING ──▶ SETTLED
   *     └──────────────── entry of another rank ────────────────────────────────▲
   *
   * REPORTING: the store is to take this rank's failure. If it does not within an answer's time, the
   *   rank decides alone.
   * ASKING: skipped if the entry itself proves who failed. Each rank publishes where it stands. The
   *   reporter of the first failure collects that and appends what it finds, which settles the
   *   group on all ranks. If it has found nothing after 5/4 of an answer's time, each other rank
   *   collects, which takes a moment, since the answers are there by then. The first finding in the
   *   log counts. After twice an answer's time the rank decides alone.
   *
   * The state has no clock, no thread, no lock, no random number and no hash order, and nothing in
   * it waits: the same inputs at the same times give the same outputs. Time is this rank's running
   * time, so a standstill does not count against the others. At most one entry is being appended;
   * the place after the last entry known is tried, and if another rank took it, the state first
   * learns that entry, which may make the append needless.
   *
   * Only one thread at a time takes a step, and no step leads to another.
   */
  private final int rank;
  private final int serverRank;
  private final AnswerTimes times;
  private final Map<String, Group> groups = new TreeMap<>();
  private final List<FailureEvent> lost = new ArrayList<>();
  private final Map<String, Asked> asked = new HashMap<>();
  private final Deque<LogEntry> toAppend = new ArrayDeque<>();
  private final List<JobOutput> outputs = new ArrayList<>();
  private long delivered;
  private boolean appending;
  private boolean unheard;
  private long silentUntil;
  private long now;
  private boolean paused;

  /**
   * Creates the state of a rank that knows of no failure.
   *
   * @param rank the rank among all
   * @param serverRank the rank that serves the store; -1 if none does
   */
  JobState(int rank, int serverRank, AnswerTimes times, long nowNanos) {
    this.rank = rank;
    this.serverRank = serverRank;
    this.times = times;
    this.silentUntil = nowNanos;
  }

  /** Creates a copy, which the original does not change, for the exploration of all histories. */
  JobState(JobState other) {
    this(other.rank, other.serverRank, other.times, other.silentUntil);
    other.groups.forEach((name, group) -> groups.put(name, new Group(group)));
    lost.addAll(other.lost);
    asked.putAll(other.asked);
    toAppend.addAll(other.toAppend);
    delivered = other.delivered;
    appending = other.appending;
    unheard = other.unheard;
  }

  /** Takes what decides how a state acts, so that states that act alike can be told from others. */
  interface Sink {
    /** Adds a number, or whether something holds. */
    void add(long value);

    /** Adds a value. */
    void add(@Nullable Object value);
  }

  /** Adds all that decides what happens next; the same for states that act alike. */
  void addTo(Sink sink) {
    boolean isAppending = isAppending();
    for (Group group : groups.values()) {
      group.addTo(sink, isAppending);
    }
    lost.forEach(sink::add);
    asked.forEach((_, each) -> sink.add(each.number));
    toAppend.forEach(sink::add);
    sink.add(delivered);
    sink.add((appending ? 1 : 0) + (unheard ? 2 : 0));
    sink.add(silentUntil);
  }

  private enum Phase {
    OPEN,
    REPORTING,
    ASKING,
    SETTLED
  }

  /** The last question about a group, and its place in the log. */
  private record Asked(Question question, long number) {}

  /** What is known of a group. */
  private static final class Group {
    final String name;
    List<Integer> globalRanks = List.of();
    boolean isJoined;
    boolean isOpen;
    Phase phase = Phase.OPEN;
    @Nullable FailureEvent own;
    @Nullable FailureEvent first;
    LogEntry.@Nullable Found found;
    @Nullable Evidence known;
    boolean isCollected;
    boolean hasAnswered;
    long reportBy;
    long askBy;
    long settleBy;

    Group(String name) {
      this.name = name;
    }

    Group(Group other) {
      name = other.name;
      globalRanks = other.globalRanks;
      isJoined = other.isJoined;
      isOpen = other.isOpen;
      phase = other.phase;
      own = other.own;
      first = other.first;
      found = other.found;
      known = other.known;
      isCollected = other.isCollected;
      hasAnswered = other.hasAnswered;
      reportBy = other.reportBy;
      askBy = other.askBy;
      settleBy = other.settleBy;
    }

    void addTo(Sink sink, boolean isAppending) {
      boolean isAsking = phase == Phase.ASKING;
      boolean isOver = phase == Phase.SETTLED && !isAppending;
      boolean mayAnswer = known != null && known.alone() && !hasAnswered;
      sink.add(name);
      sink.add(phase.ordinal());
      sink.add(
          (isJoined ? 1 : 0)
              + (isOpen ? 2 : 0)
              + (isCollected ? 4 : 0)
              + (hasAnswered ? 8 : 0)
              + (own != null ? 16 : 0)
              + (first != null ? 32 : 0)
              + (found != null ? 64 : 0));
      sink.add(isOver ? null : own);
      sink.add(isOver ? null : first);
      sink.add(isOver ? null : found);
      sink.add(isAsking || mayAnswer ? known : null);
      sink.add(phase == Phase.REPORTING ? reportBy : 0);
      sink.add(isAsking ? askBy : 0);
      sink.add(isAsking ? settleBy : 0);
    }
  }

  /**
   * Takes one step.
   *
   * @param nowNanos the running time of this rank; never earlier than before
   * @param stoodStill whether this rank stood still until recently
   */
  List<JobOutput> step(long nowNanos, boolean stoodStill, JobInput input) {
    if (!outputs.isEmpty()) {
      throw new IllegalStateException("a step within a step");
    }
    now = nowNanos;
    paused = stoodStill;
    try {
      switch (input) {
        case JobInput.Joined(String name, List<Integer> globalRanks, boolean isOpen) ->
            join(name, globalRanks, isOpen);
        case JobInput.Left(String name) -> leave(group(name));
        case JobInput.Failed(FailureEvent event) -> fail(event);
        case JobInput.Waits(Question question) -> toAppend.add(new LogEntry.Asked(question));
        case JobInput.Read(long number, LogEntry entry) -> read(number, entry);
        case JobInput.Written(long number) -> written(number);
        case JobInput.Taken(long number, LogEntry entry) -> {
          appending = false;
          read(number, entry);
        }
        case JobInput.Unwritten() -> unwritten();
        case JobInput.Collected(String name, Evidence evidence) -> collected(group(name), evidence);
        case JobInput.ServerLost(String why) -> loseServer(why);
        case JobInput.Deaf(String why) -> failAll(why);
        case JobInput.Silence() -> silentUntil = now + nanos(times.answer());
        case JobInput.Tick() -> tick();
      }
      append();
      return List.copyOf(outputs);
    } finally {
      outputs.clear();
    }
  }

  /** Tells whether the store did not take a failure, so that no other rank can be asked. */
  boolean isUnheard() {
    return unheard;
  }

  /** Tells whether an entry is still to be appended. */
  boolean isAppending() {
    return !toAppend.isEmpty();
  }

  /** Returns when the next limit passes; {@link Long#MAX_VALUE} if there is none. */
  long nextLimit() {
    long next = Long.MAX_VALUE;
    for (Group group : groups.values()) {
      next = Math.min(next, limitOf(group));
    }
    return next;
  }

  private static long limitOf(Group group) {
    return switch (group.phase) {
      case REPORTING -> group.reportBy;
      case ASKING -> Math.min(group.askBy, group.settleBy);
      case OPEN, SETTLED -> Long.MAX_VALUE;
    };
  }

  private Group group(String name) {
    return groups.computeIfAbsent(name, Group::new);
  }

  private void join(String name, List<Integer> globalRanks, boolean isOpen) {
    Group group = group(name);
    group.globalRanks = globalRanks;
    group.isJoined = true;
    group.isOpen = isOpen;
    for (FailureEvent gone : lost) {
      FailureEvent inGroup = gone.inGroup(name, globalRanks);
      if (inGroup != null && group.first == null) {
        group.first = inGroup;
      }
    }
    if (group.first != null) {
      outputs.add(new JobOutput.Fail(group.first));
      begin(group, group.first);
    }
  }

  private void leave(Group group) {
    group.isJoined = false;
    group.phase = Phase.SETTLED;
    asked.remove(group.name);
    if (group.first == null && group.own == null) {
      groups.remove(group.name);
    }
  }

  private void fail(FailureEvent cause) {
    Group group = group(cause.group());
    if (group.first != null || group.own != null) {
      return;
    }
    FailureEvent event = asSeen(group, cause);
    group.own = event;
    outputs.add(new JobOutput.Fail(event));
    if (now - silentUntil < 0) {
      unheard = true;
      accept(event);
      return;
    }
    group.phase = Phase.REPORTING;
    group.reportBy = now + nanos(times.answer());
    toAppend.add(new LogEntry.Failed(event));
  }

  /** Returns a failure as this rank reports it. */
  private FailureEvent asSeen(Group group, FailureEvent event) {
    int self = group.globalRanks.indexOf(rank);
    return paused && self >= 0 ? Blame.afterStandstill(event, self) : event;
  }

  private void failAll(String why) {
    for (Group group : List.copyOf(groups.values())) {
      if (group.isJoined) {
        int own = group.globalRanks.indexOf(rank);
        fail(FailureEvent.outside(group.name, Kind.FAILED, own, own, why));
      }
    }
  }

  private void loseServer(String why) {
    unheard = true;
    for (Group group : List.copyOf(groups.values())) {
      int served = group.globalRanks.indexOf(serverRank);
      if (group.isJoined && served >= 0) {
        int own = group.globalRanks.indexOf(rank);
        accept(asSeen(group, FailureEvent.outside(group.name, Kind.PEER_LOST, own, served, why)));
      }
    }
  }

  // The log

  /** Begins to append the next entry that is still wanted. */
  private void append() {
    while (!appending && !toAppend.isEmpty()) {
      LogEntry entry = toAppend.element();
      if (isWanted(entry)) {
        appending = true;
        outputs.add(new JobOutput.Append(delivered + 1, entry));
      } else {
        toAppend.remove();
      }
    }
  }

  private boolean isWanted(LogEntry entry) {
    return switch (entry) {
      // The first failure may be this very one, delivered on this rank alone.
      case LogEntry.Failed(FailureEvent event) -> {
        FailureEvent first = group(event.group()).first;
        yield first == null || first.equals(event);
      }
      case LogEntry.Found found -> group(found.group()).found == null;
      case LogEntry.Asked(Question question) -> {
        Asked earlier = asked.get(question.group());
        if (earlier == null || !question.isSame(earlier.question)) {
          yield true;
        }
        outputs.add(new JobOutput.Find(question, earlier.number, false));
        yield false;
      }
      case LogEntry.Inquired _, LogEntry.Unknown _ -> true;
    };
  }

  private void written(long number) {
    appending = false;
    unheard = false;
    LogEntry entry = toAppend.remove();
    read(number, entry);
    if (entry instanceof LogEntry.Asked(Question question)) {
      outputs.add(new JobOutput.Find(question, number, true));
    }
  }

  private void unwritten() {
    appending = false;
    switch (toAppend.remove()) {
      case LogEntry.Failed(FailureEvent event) -> {
        unheard = true;
        accept(event);
      }
      case LogEntry.Found found -> settleAlone(group(found.group()));
      case LogEntry.Asked(Question question) ->
          outputs.add(new JobOutput.Find(question, -1, false));
      case LogEntry.Inquired _, LogEntry.Unknown _ -> {}
    }
  }

  private void read(long number, LogEntry entry) {
    if (number != delivered + 1) {
      return;
    }
    delivered = number;
    switch (entry) {
      case LogEntry.Failed(FailureEvent event) -> accept(event);
      case LogEntry.Found found -> find(group(found.group()), found);
      case LogEntry.Asked(Question question) -> {
        Group group = groups.get(question.group());
        if (group != null && group.isJoined) {
          asked.put(group.name, new Asked(question, number));
          outputs.add(new JobOutput.Answer(number, group.name));
        }
      }
      case LogEntry.Inquired inquired -> outputs.add(new JobOutput.Report(inquired.inquiry()));
      case LogEntry.Unknown() -> {}
    }
  }

  /** Takes a failure for the first of its group, unless there was one before. */
  private void accept(FailureEvent event) {
    if (event.isOfAllGroups()) {
      lost.add(event);
      for (Group group : List.copyOf(groups.values())) {
        FailureEvent inGroup = event.inGroup(group.name, group.globalRanks);
        if (inGroup != null && group.isJoined) {
          accept(inGroup);
        }
      }
      return;
    }
    Group group = group(event.group());
    if (group.first != null) {
      answerLate(group, event);
      return;
    }
    group.first = event;
    if (group.isJoined) {
      if (!event.equals(group.own)) {
        outputs.add(new JobOutput.Fail(event));
      }
      begin(group, event);
    }
  }

  /** Answers the others about a failure of a group for which this rank has decided alone. */
  private void answerLate(Group group, FailureEvent event) {
    Evidence known = group.known;
    if (group.isJoined && known != null && known.alone() && !group.hasAnswered) {
      group.hasAnswered = true;
      if (Blame.isWait(event)) {
        outputs.add(new JobOutput.Ask(known, true, null));
      }
    }
  }

  // What the ranks find out

  private void begin(Group group, FailureEvent event) {
    int self = group.globalRanks.indexOf(rank);
    // A rank that has not come so far has called nothing that could mismatch.
    boolean isAsked = group.isOpen ? Blame.isWait(event) : event.isTimeoutOfOthers();
    Evidence known =
        Evidence.of(
            event,
            group.globalRanks.size(),
            self,
            group.globalRanks.indexOf(serverRank),
            paused && isAsked && event.kind() == Kind.TIMEOUT);
    group.known = known;
    group.phase = Phase.ASKING;
    group.askBy = Long.MAX_VALUE;
    // A rank may be behind the call that does not match.
    long late = event.kind() == Kind.MISMATCH ? nanos(times.call()) : 0;
    group.settleBy = now + nanos(times.answers()) + late;
    if (unheard) {
      settleAlone(group);
    } else if (group.found != null) {
      settle(group, known.adopting(group.found.finding()));
    } else if (known.paused()) {
      conclude(group, known);
    } else if (isAsked) {
      boolean isAsker = self == event.reporter();
      group.hasAnswered = true;
      outputs.add(new JobOutput.Ask(known, true, isAsker ? times.answer() : null));
      group.askBy = isAsker ? Long.MAX_VALUE : now + nanos(times.finding()) + late;
    } else if (group.isOpen && event.kind() == Kind.PEER_LOST && event.failedRank() >= 0) {
      outputs.add(new JobOutput.LookUp(known));
      group.settleBy = now + nanos(times.answer());
    } else {
      settle(group, group.isOpen ? known : known.adopting(Diagnosis.NONE));
    }
  }

  private void collected(Group group, @Nullable Evidence evidence) {
    if (group.phase != Phase.ASKING || group.known == null) {
      return;
    }
    if (evidence == null) {
      settleAlone(group);
    } else if (Blame.isWait(evidence.event())) {
      conclude(group, evidence);
    } else {
      settle(group, evidence);
    }
  }

  /** Tells the other ranks what this rank concludes, unless one of them was first. */
  private void conclude(Group group, Evidence evidence) {
    if (group.found != null) {
      settle(group, evidence.adopting(group.found.finding()));
      return;
    }
    group.known = evidence;
    group.isCollected = true;
    toAppend.add(new LogEntry.Found(group.name, evidence.self(), Blame.find(evidence)));
  }

  private void find(Group group, LogEntry.Found found) {
    if (group.found != null) {
      return;
    }
    group.found = found;
    Evidence known = group.known;
    if (group.phase == Phase.ASKING && known != null) {
      boolean isOwn = group.isCollected && found.by() == known.self();
      settle(group, isOwn ? known : known.adopting(found.finding()));
    }
  }

  private void settleAlone(Group group) {
    if (group.phase == Phase.ASKING && group.known != null) {
      settle(group, group.known.withoutStore());
    }
  }

  private void settle(Group group, Evidence evidence) {
    group.phase = Phase.SETTLED;
    group.known = evidence;
    outputs.add(new JobOutput.Settle(evidence, Blame.judge(evidence)));
  }

  private void tick() {
    for (Group group : List.copyOf(groups.values())) {
      FailureEvent own = group.own;
      if (limitOf(group) > now) {
        continue;
      }
      if (group.phase == Phase.REPORTING && own != null) {
        unheard = true;
        accept(own);
      } else if (group.settleBy <= now) {
        settleAlone(group);
      } else if (group.known != null) {
        group.askBy = Long.MAX_VALUE;
        outputs.add(new JobOutput.Ask(group.known, false, times.lateAnswer()));
      }
    }
  }
}
