package dev.tutti.runtime.failure;

import static dev.tutti.runtime.operation.Deadlines.nanos;

import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.GroupState.Phase;
import dev.tutti.runtime.status.Inquiry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** The failures of a job as one rank has them, and what it does about them. */
final class JobState {
  /*
   * One group, from its first failure on:
   *
   *   OPEN ──own failure──▶ REPORTING ──Written, or an entry of another rank──▶ ASKING ──▶ SETTLED
   *     │                   ▲ no reason in time                                 ▲
   *     ├─PeerGone─▶ EXPLAINING ──────────── entry of another rank ─────────────┤
   *     └──────────────── entry of another rank ────────────────────────────────┘
   *
   * EXPLAINING: a peer of a group in set-up ended its connection. It may have given up for a reason
   *   that is on its way into the log, or, in a chain of ranks that give up, because of another one.
   *   So if no reason comes in an answer's time, the rank reports that it waited, and the ranks ask
   *   who does not answer. If the store does not answer meanwhile, the rank decides alone.
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
   * takes in that entry, which may make the append needless. Which failure of a group is the first
   * follows from their places in the log alone, also for a rank that joins the group later. A rank
   * reports nothing of a group that it has left. If it decides alone, it says at once where it
   * stands, since it may have left when the store answers and others ask.
   *
   * An append that ran out of time because this rank stood still proves nothing about the store: it
   * is tried again, unless the log has shown the entry by then.
   *
   * Only one thread at a time takes a step, and no step leads to another.
   *
   * What a failure runs for the first time is on its way to the caller. A switch over types is linked
   * at its first run, which takes milliseconds, so entries are distinguished by instanceof.
   */
  private final int rank;
  private final int serverRank;
  private final AnswerTimes times;
  private final Map<String, GroupState> groups = new TreeMap<>();
  private final List<Lost> lost = new ArrayList<>();
  private final Deque<LogEntry> toAppend = new ArrayDeque<>();
  private final List<JobOutput> outputs = new ArrayList<>();
  private final WaitState waits = new WaitState(groups, outputs);
  private long delivered;
  private boolean appending;
  private boolean unheard;
  private long silentUntil;
  private long now;
  private boolean paused;

  /**
   * Creates the state of a rank without failures.
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
    other.groups.forEach((name, group) -> groups.put(name, group.copy()));
    lost.addAll(other.lost);
    waits.copy(other.waits);
    toAppend.addAll(other.toAppend);
    delivered = other.delivered;
    appending = other.appending;
    unheard = other.unheard;
  }

  /** Adds all that decides what happens next; the same for states that act alike. */
  void addTo(GroupState.Sink sink) {
    boolean isAppending = isAppending();
    for (GroupState group : groups.values()) {
      group.addTo(sink, isAppending);
    }
    for (Lost each : lost) {
      sink.add(each.number);
      sink.add(each.event);
    }
    waits.addTo(sink);
    toAppend.forEach(sink::add);
    sink.add(delivered);
    sink.add((appending ? 1 : 0) + (unheard ? 2 : 0));
    sink.add(silentUntil);
  }

  /** The loss of a rank, and its place in the log. */
  private record Lost(long number, FailureEvent event) {}

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
        case JobInput.PeerGone(FailureEvent event) -> explain(event);
        case JobInput.Reached(String name) -> reach(groups.get(name));
        case JobInput.Refused(FailureEvent event) -> toAppend.add(new LogEntry.Failed(event));
        case JobInput.Waits(Question question) -> {
          waits.begin(question, now + nanos(times.question()));
          toAppend.add(new LogEntry.Asked(question));
        }
        case JobInput.Answered(Question question, long number, Evidence evidence) ->
            waits.answered(question, number, evidence);
        case JobInput.Adopted(Question question, String finding) -> waits.say(question, finding);
        case JobInput.Read(long number, LogEntry entry) -> read(number, entry);
        case JobInput.Skipped(long last) -> delivered = Math.max(delivered, last);
        case JobInput.Written(long number) -> written(number);
        case JobInput.Taken(long number, LogEntry entry) -> {
          appending = false;
          read(number, entry);
        }
        case JobInput.Missed() -> appending = false;
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

  /** Returns whether the store did not take a failure, so that no other rank can be asked. */
  boolean isUnheard() {
    return unheard;
  }

  /** Returns whether an entry is still to be appended. */
  boolean isAppending() {
    return !toAppend.isEmpty();
  }

  /** Returns when the next limit passes; {@link Long#MAX_VALUE} if there is none. */
  long nextLimit() {
    long next = waits.limit();
    for (GroupState group : groups.values()) {
      next = Math.min(next, group.limit());
    }
    return next;
  }

  private GroupState group(String name) {
    return groups.computeIfAbsent(name, GroupState::new);
  }

  private void join(String name, List<Integer> globalRanks, boolean isOpen) {
    GroupState group = group(name);
    for (Lost gone : group.isJoined ? List.<Lost>of() : lost) {
      FailureEvent inGroup = gone.event.inGroup(name, globalRanks);
      if (inGroup != null && gone.number < group.firstNumber) {
        group.first = inGroup;
        group.firstNumber = gone.number;
      }
    }
    group.globalRanks = globalRanks;
    group.isJoined = true;
    group.isOpen = isOpen;
    if (group.phase == Phase.EXPLAINING) {
      group.phase = Phase.OPEN;
    }
    if (group.first != null) {
      outputs.add(new JobOutput.Fail(group.first));
      begin(group, group.first);
    }
  }

  private void leave(GroupState group) {
    group.isJoined = false;
    group.phase = Phase.SETTLED;
    waits.leave(group.name);
    if (group.first == null && group.own == null) {
      groups.remove(group.name);
    }
  }

  private void fail(FailureEvent cause) {
    GroupState group = groups.get(cause.group());
    if (group == null || !isUnfailed(group)) {
      return;
    }
    FailureEvent event = asSeen(group, cause);
    group.own = event;
    outputs.add(new JobOutput.Fail(event));
    if (now - silentUntil < 0) {
      unheard = true;
      accept(event, Long.MAX_VALUE);
      return;
    }
    group.phase = Phase.REPORTING;
    group.reportBy = now + nanos(times.answer());
    toAppend.add(new LogEntry.Failed(event));
  }

  private static boolean isUnfailed(GroupState group) {
    return group.isJoined && group.first == null && group.own == null;
  }

  private void explain(FailureEvent event) {
    GroupState group = groups.get(event.group());
    if (group == null || !isUnfailed(group) || group.phase == Phase.EXPLAINING) {
      return;
    }
    if (paused || now - silentUntil < 0) {
      fail(event);
      return;
    }
    group.phase = Phase.EXPLAINING;
    group.gone = event;
    group.isReached = false;
    group.explainBy = now + nanos(times.answer());
    outputs.add(new JobOutput.Probe(group.name));
  }

  private static void reach(@Nullable GroupState group) {
    if (group != null) {
      group.isReached = true;
    }
  }

  private void failUnexplained(GroupState group, FailureEvent event) {
    group.phase = Phase.OPEN;
    if (!group.isReached) {
      silentUntil = now + nanos(times.answer());
    }
    fail(event.kind() == Kind.PEER_LOST ? event.asTimeout() : event);
  }

  /** Returns a failure as this rank reports it. */
  private FailureEvent asSeen(GroupState group, FailureEvent event) {
    int self = group.globalRanks.indexOf(rank);
    return paused && self >= 0 ? Blame.afterStandstill(event, self) : event;
  }

  private boolean isServer() {
    return rank == serverRank;
  }

  private void failAll(String why) {
    for (GroupState group : List.copyOf(groups.values())) {
      if (group.isJoined) {
        int own = group.globalRanks.indexOf(rank);
        fail(FailureEvent.outside(group.name, Kind.FAILED, own, own, why));
      }
    }
  }

  private void loseServer(String why) {
    unheard = true;
    for (GroupState group : List.copyOf(groups.values())) {
      int served = group.globalRanks.indexOf(serverRank);
      if (group.isJoined && served >= 0) {
        int own = group.globalRanks.indexOf(rank);
        accept(
            asSeen(group, FailureEvent.outside(group.name, Kind.PEER_LOST, own, served, why)),
            Long.MAX_VALUE);
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
    if (entry instanceof LogEntry.Failed(FailureEvent event)) {
      // The first failure may be this very one, delivered on this rank alone.
      GroupState group = group(event.group());
      FailureEvent first = group.first;
      return first == null || (group.firstNumber == Long.MAX_VALUE && first.isSame(event));
    }
    if (entry instanceof LogEntry.Found found) {
      return group(found.group()).found == null;
    }
    return !(entry instanceof LogEntry.Asked(Question question)) || waits.isWanted(question);
  }

  private void written(long number) {
    appending = false;
    unheard = false;
    LogEntry entry = toAppend.remove();
    read(number, entry);
    if (entry instanceof LogEntry.Asked(Question question)) {
      waits.ask(question, number);
    }
  }

  private void unwritten() {
    appending = false;
    switch (toAppend.remove()) {
      case LogEntry.Failed(FailureEvent event) -> {
        unheard = true;
        accept(event, Long.MAX_VALUE);
      }
      case LogEntry.Found found -> settleAlone(group(found.group()));
      case LogEntry.Asked(Question question) -> waits.say(question, null);
      case LogEntry.Inquired _, LogEntry.Unknown _ -> {}
    }
  }

  private void read(long number, LogEntry entry) {
    if (number != delivered + 1) {
      return;
    }
    delivered = number;
    if (entry instanceof LogEntry.Failed(FailureEvent event)) {
      accept(event, number);
    } else if (entry instanceof LogEntry.Found found) {
      find(group(found.group()), found);
    } else if (entry instanceof LogEntry.Asked(Question question)) {
      waits.read(question, number);
    } else if (entry instanceof LogEntry.Inquired(Inquiry inquiry)) {
      outputs.add(new JobOutput.Report(inquiry));
    }
  }

  /** Takes a failure for the first of its group, unless there was one before. */
  private void accept(FailureEvent event, long number) {
    if (event.isOfAllGroups()) {
      lost.add(new Lost(number, event));
      for (GroupState group : List.copyOf(groups.values())) {
        FailureEvent inGroup = event.inGroup(group.name, group.globalRanks);
        if (inGroup != null && group.isJoined) {
          accept(inGroup, number);
        }
      }
      return;
    }
    GroupState group = group(event.group());
    if (group.first != null) {
      if (number < group.firstNumber && event.isSame(group.first)) {
        group.firstNumber = number;
      }
      return;
    }
    group.first = event;
    group.firstNumber = number;
    if (group.isJoined) {
      if (group.own == null || !event.isSame(group.own)) {
        outputs.add(new JobOutput.Fail(event));
      }
      begin(group, event);
    }
  }

  // What the ranks find out

  private void begin(GroupState group, FailureEvent event) {
    int self = group.globalRanks.indexOf(rank);
    // A rank that has not come so far has called nothing that could mismatch.
    boolean isAsked = group.isOpen ? Blame.isWait(event) : event.isTimeoutOfOthers();
    Evidence known =
        Evidence.of(
            event,
            group.globalRanks.size(),
            self,
            group.globalRanks.indexOf(serverRank),
            paused && (isAsked ? event.kind() == Kind.TIMEOUT : event.isOfStore() && isServer()));
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

  private void collected(GroupState group, @Nullable Evidence evidence) {
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

  /** Sends the other ranks what this rank concludes, unless one of them was first. */
  private void conclude(GroupState group, Evidence evidence) {
    if (group.found != null) {
      settle(group, evidence.adopting(group.found.finding()));
      return;
    }
    group.known = evidence;
    group.isCollected = true;
    toAppend.add(new LogEntry.Found(group.name, evidence.self(), Blame.find(evidence)));
  }

  private void find(GroupState group, LogEntry.Found found) {
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

  private void settleAlone(GroupState group) {
    if (group.phase == Phase.ASKING && group.known != null) {
      settle(group, group.known.withoutStore());
    }
  }

  private void settle(GroupState group, Evidence evidence) {
    group.phase = Phase.SETTLED;
    group.known = evidence;
    if (evidence.alone() && !group.hasAnswered) {
      outputs.add(new JobOutput.Ask(evidence, true, null));
    }
    outputs.add(new JobOutput.Settle(evidence, Blame.judge(evidence)));
  }

  private void tick() {
    waits.tick(now);
    for (GroupState group : List.copyOf(groups.values())) {
      FailureEvent own = group.own;
      if (group.limit() > now) {
        continue;
      }
      if (group.phase == Phase.EXPLAINING && group.gone != null) {
        failUnexplained(group, group.gone);
      } else if (group.phase == Phase.REPORTING && own != null) {
        unheard = true;
        accept(own, Long.MAX_VALUE);
      } else if (group.settleBy <= now) {
        settleAlone(group);
      } else if (group.known != null) {
        group.askBy = Long.MAX_VALUE;
        outputs.add(new JobOutput.Ask(group.known, false, times.lateAnswer()));
      }
    }
  }
}
