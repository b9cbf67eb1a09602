package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.JobAction.Fault;
import dev.tutti.runtime.failure.JobAction.Step;
import dev.tutti.runtime.model.Model;
import dev.tutti.runtime.operation.RankProgress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The ranks of a job that wait in one collective, or each for a message of the next, the log, and
 * the answers in the store. Each rank has the real {@link JobState}; what its threads would do for
 * it are actions, each of which may be the next.
 */
final class JobModel implements Model<JobAction> {
  /*
   * A call of the store has two actions, its effect and its reply, so a rank may be lost between
   * them. Time passes only when no rank has anything left to do at this time: the ranks that run are
   * fast beside the limits. A rank that is paused is arbitrarily slow, and may miss the reply of a
   * call that it waited for; one that is cut off cannot use the store, though its peers reach it.
   * What happens to ranks from outside counts as a fault, and their number is limited.
   */
  static final AnswerTimes TIMES = new AnswerTimes(Duration.ofNanos(100));
  static final String GROUP = "0";
  private static final int MOST_ENTRIES = 64;

  /**
   * What the ranks wait for: one collective, of which some may call another, or in which they ask
   * each other what keeps it, messages, or each other to set up the group, and then for one
   * collective.
   */
  enum Wait {
    COLLECTIVE,
    MISMATCH,
    SLOW,
    MESSAGES,
    SET_UP
  }

  final ModelRank[] ranks;
  private final KnownSteps steps;

  /** What each rank published; shared with other states. */
  @Nullable Said[] published;

  /**
   * For each question, by its place in the log, what each rank has answered, one bit each; shared
   * with other states.
   */
  long[] said;

  /** The questions, by their places in the log, whose findings are in the store, one bit each. */
  long told;

  /** The entries; shared with other states. */
  List<LogEntry> log;

  private long logHash;
  final Wait wait;
  final int server;
  int faultsLeft;

  /** The ranks to which something happened, one bit each. */
  int faulty;

  /** Whether nothing has happened but that ranks called something else. */
  boolean allAnswer = true;

  private long now;

  /**
   * Creates a job without a failure.
   *
   * @param wait what the ranks wait for
   * @param size the number of ranks
   * @param server the rank whose end is that of the store; -1 if the store outlives all ranks
   * @param faults how many faults may happen
   */
  JobModel(Wait wait, int size, int server, int faults) {
    this.wait = wait;
    steps = new KnownSteps();
    said = new long[MOST_ENTRIES];
    log = List.of();
    ranks = new ModelRank[size];
    published = new Said[size];
    this.server = server;
    faultsLeft = faults;
    for (int r = 0; r < size; r++) {
      ranks[r] = new ModelRank(KnownSteps.first(new JobState(r, server, TIMES, 0)));
      if (wait != Wait.SET_UP) {
        join(r, true);
      }
    }
  }

  private void join(int r, boolean isOpen) {
    ranks[r].isJoined = true;
    ranks[r].isOpen = isOpen;
    List<Integer> all = IntStream.range(0, ranks.length).boxed().toList();
    offer(r, new JobInput.Joined(GROUP, all, isOpen));
  }

  private JobModel(JobModel other) {
    ranks = other.ranks.clone();
    steps = other.steps;
    published = other.published;
    said = other.said;
    told = other.told;
    log = other.log;
    logHash = other.logHash;
    faulty = other.faulty;
    wait = other.wait;
    server = other.server;
    faultsLeft = other.faultsLeft;
    allAnswer = other.allAnswer;
    now = other.now;
  }

  /** Returns all that decides what may happen next, mixed to 64 bits. */
  @Override
  public long fingerprint() {
    StateHash all = new StateHash();
    all.add(now);
    all.add(faultsLeft + (allAnswer ? 8 : 0));
    all.add(faulty);
    all.add(logHash);
    all.add(told);
    for (int number = 1; number <= log.size(); number++) {
      all.add(said[number]);
    }
    for (Said said : published) {
      all.add(said == null ? 0 : said.code);
    }
    for (ModelRank rank : ranks) {
      all.add(rank.hash());
    }
    return all.value();
  }

  boolean reachesStore(ModelRank rank) {
    return !rank.isCutOff && (server < 0 || !ranks[server].isCrashed);
  }

  boolean isStoreSilent() {
    return server >= 0 && !ranks[server].isCrashed && ranks[server].pausedSince >= 0;
  }

  long running(ModelRank rank) {
    return now - rank.lost;
  }

  long nextTime() {
    long next = Long.MAX_VALUE;
    boolean isPaused = false;
    for (ModelRank rank : ranks) {
      isPaused |= rank.pausedSince >= 0 && now - rank.pausedSince <= 300;
      if (rank.runs()) {
        long limit = rank.known.nextLimit();
        next = Math.min(next, limit == Long.MAX_VALUE ? limit : limit + rank.lost);
        // What is overdue waits for a store that is silent.
        long collectBy = rank.collectBy + rank.lost;
        boolean isCollecting = rank.collect != null && !rank.answers && collectBy > now;
        next = isCollecting ? Math.min(next, collectBy) : next;
        next = rank.find == null ? next : later(next, rank.findBy + rank.lost);
        next = rank.adopt == null ? next : later(next, rank.adoptBy + rank.lost);
      }
    }
    // Nothing else happens until a rank that is paused has stood still for long.
    return next == Long.MAX_VALUE && isPaused ? now + 400 : Math.max(next, now);
  }

  /** Returns the earlier of two times; what is overdue waits for a store that is silent. */
  private long later(long next, long limit) {
    return limit > now ? Math.min(next, limit) : next;
  }

  /** Returns what may happen next. */
  @Override
  public List<JobAction> actions() {
    return new PossibleActions(this).all();
  }

  /** Returns the state after an action. */
  @Override
  public JobModel after(JobAction action) {
    JobModel next = new JobModel(this);
    next.run(action);
    return next;
  }

  private void run(JobAction action) {
    if (action.kind() == Step.PASS_TIME) {
      now = nextTime();
      return;
    }
    int r = action.rank();
    ModelRank rank = own(r);
    switch (action.kind()) {
      case FAULT -> suffer(r, Objects.requireNonNull(action.fault()));
      case READ -> {
        LogEntry entry = log.get(rank.read);
        rank.read++;
        offer(r, new JobInput.Read(rank.read, entry));
      }
      case STORE -> store(rank);
      case JOIN -> join(r, false);
      case OPEN -> join(r, true);
      case WILL -> {
        rank.hasWill = false;
        log(new LogEntry.Failed(FailureEvent.lost(r)));
      }
      case QUESTION -> {
        rank.explainBy = running(rank) + TIMES.question().toNanos();
        offer(r, new JobInput.Waits(question(r)));
      }
      case SAY -> {
        if (reachesStore(rank)) {
          said = said.clone();
          said[(int) rank.says] |= 1L << r;
        }
        rank.says = 0;
      }
      case FIND -> {
        JobOutput.Find find = Objects.requireNonNull(rank.find);
        rank.find = null;
        Evidence evidence = reachesStore(rank) ? found(find) : null;
        offer(r, new JobInput.Answered(find.question(), find.number(), evidence));
      }
      case ADOPT -> {
        JobOutput.Adopt adopt = Objects.requireNonNull(rank.adopt);
        rank.adopt = null;
        boolean isTold = reachesStore(rank) && (told & 1L << adopt.number()) != 0;
        offer(r, new JobInput.Adopted(adopt.question(), isTold ? "found" : null));
      }
      case TELL -> {
        if (reachesStore(rank)) {
          told |= 1L << Objects.requireNonNull(rank.tell).number();
        }
        rank.tell = null;
      }
      case PROBE -> {
        rank.probes = false;
        if (reachesStore(rank)) {
          offer(r, new JobInput.Reached(GROUP));
        }
      }
      case REPLY -> {
        JobInput reply = rank.reply;
        rank.reply = null;
        rank.isLate = false;
        offer(r, reply);
      }
      case MISS -> {
        rank.reply = null;
        rank.isLate = false;
        offer(r, new JobInput.Missed());
      }
      case ANSWER -> answer(r);
      case COLLECT -> {
        Evidence evidence = reachesStore(rank) ? collected(rank.collect) : null;
        rank.collect = null;
        offer(r, new JobInput.Collected(GROUP, evidence));
      }
      case LOOK_UP -> {
        Evidence known = Objects.requireNonNull(rank.lookUp);
        int lost = known.event().failedRank();
        boolean hasClosed = published[lost] == Said.CLOSED;
        Evidence evidence =
            hasClosed ? known.and(Map.of(lost, Said.CLOSED.progress), Set.of(), Set.of()) : known;
        rank.lookUp = null;
        offer(r, new JobInput.Collected(GROUP, reachesStore(rank) ? evidence : null));
      }
      case TICK -> offer(r, new JobInput.Tick());
      case TIME_OUT -> fail(r, Kind.TIMEOUT, action.peer());
      case MISMATCH -> fail(r, Kind.MISMATCH, -1);
      case LOSE_PEER -> fail(r, Kind.PEER_LOST, action.peer());
      case LOSE_SERVER -> {
        rank.hasLostServer = true;
        offer(r, new JobInput.ServerLost("the store ended"));
      }
      case RESUME -> {
        long pause = now - rank.pausedSince;
        rank.lost += pause;
        rank.pausedSince = -1;
        if (pause > TIMES.standstill().toNanos()) {
          rank.stoodStillUntil = now + 2 * pause;
          rank.isLate = rank.isAppending();
        }
        // The store takes all that was sent to it before it ends a wait.
        for (int other = 0; r == server && other < ranks.length; other++) {
          if (ranks[other].runs() && ranks[other].answers) {
            own(other);
            answer(other);
          }
        }
      }
      case PASS_TIME -> throw new AssertionError();
    }
  }

  private void answer(int r) {
    ModelRank rank = ranks[r];
    if (reachesStore(rank)) {
      publish(r, standing(r));
    }
    rank.answers = false;
    rank.collectBy = running(rank) + rank.collectLimit;
  }

  private void publish(int r, Said what) {
    published = published.clone();
    published[r] = what;
  }

  /** Returns a rank that no other state shares. */
  private ModelRank own(int r) {
    ranks[r] = ranks[r].copy();
    return ranks[r];
  }

  private void suffer(int r, Fault fault) {
    ModelRank rank = ranks[r];
    faultsLeft--;
    allAnswer &= fault == Fault.CALL_OTHER;
    faulty |= 1 << r;
    switch (fault) {
      case CRASH -> {
        rank.isCrashed = true;
        rank.hasWill = server >= 0 && r != server && !rank.isCutOff;
        if (r == server) {
          for (int other = 0; other < ranks.length; other++) {
            loseStore(other);
          }
        }
      }
      case PAUSE -> {
        rank.pausedSince = now;
        for (int other = 0; r == server && other < ranks.length; other++) {
          if (other != r && ranks[other].read < log.size()) {
            own(other).sent = ranks[other].read + 1;
          }
        }
      }
      case CUT_OFF -> rank.isCutOff = true;
      case ABORT -> fail(r, Kind.ABORTED, r);
      case STAY_AWAY -> rank.isAway = true;
      case CALL_OTHER -> rank.isOdd = true;
      case CLOSE -> {
        if (reachesStore(rank) && !isStoreSilent()) {
          publish(r, Said.CLOSED);
        }
        leave(r);
      }
    }
  }

  /** Ends the call of a rank whose store is gone. */
  private void loseStore(int r) {
    ModelRank rank = r == server ? ranks[r] : own(r);
    if (rank.append != null) {
      rank.append = null;
      rank.reply = new JobInput.Unwritten();
    }
  }

  /** Lets a rank leave its group, after which it reports nothing more of it. */
  private void leave(int r) {
    ranks[r].hasLeft = true;
    offer(r, new JobInput.Left(GROUP));
    FailureEvent late = FailureEvent.outside(GROUP, Kind.FAILED, r, r, "late");
    for (JobInput input : List.of(new JobInput.Failed(late), new JobInput.PeerGone(late))) {
      require(step(r, false, input).isEmpty(), "nothing is reported of a group that was left");
    }
  }

  boolean isFaulty(int r) {
    return r >= 0 && (faulty & 1 << r) != 0;
  }

  private Said standing(int r) {
    if (!ranks[r].isOpen) {
      return Said.IN_SET_UP;
    }
    if (ranks[r].isAway) {
      return Said.ABSENT;
    }
    return switch (wait) {
      case COLLECTIVE, MISMATCH, SLOW, SET_UP -> ranks[r].isOdd ? Said.CALLED_OTHER : Said.CALLED;
      case MESSAGES -> Said.RECEIVES;
    };
  }

  private int next(int r) {
    return (r + 1) % ranks.length;
  }

  private void fail(int r, Kind kind, int failedRank) {
    ModelRank rank = ranks[r];
    rank.isFailing = true;
    if (!rank.isOpen) {
      failSetUp(r, kind == Kind.ABORTED ? Kind.FAILED : kind, failedRank);
      return;
    }
    boolean isMessage = wait == Wait.MESSAGES;
    OpType op = isMessage ? OpType.RECV : OpType.BARRIER;
    int peer = isMessage ? next(r) : -1;
    offer(
        r,
        new JobInput.Failed(
            new FailureEvent(
                GROUP, kind, r, failedRank, op, 1, peer, 0, Duration.ZERO, kind.name())));
  }

  private void failSetUp(int r, Kind kind, int failedRank) {
    FailureEvent event =
        new FailureEvent(GROUP, kind, r, failedRank, OpType.INIT, 0, Duration.ZERO, kind.name());
    boolean mayBeExplained = kind == Kind.PEER_LOST;
    if (mayBeExplained) {
      ranks[r].settleBy =
          running(ranks[r]) + TIMES.answer().multipliedBy(2).plus(TIMES.answers()).toNanos();
    }
    offer(r, mayBeExplained ? new JobInput.PeerGone(event) : new JobInput.Failed(event));
  }

  private void store(ModelRank rank) {
    JobOutput.Append append = rank.append;
    rank.append = null;
    int number = (int) append.number();
    if (!reachesStore(rank)) {
      rank.reply = new JobInput.Unwritten();
    } else if (number <= log.size()) {
      rank.reply = new JobInput.Taken(number, log.get(number - 1));
    } else {
      require(number == log.size() + 1, "the log has no gaps");
      log(append.entry());
      rank.reply = new JobInput.Written(number);
    }
  }

  private static Question question(int r) {
    return new Question(GROUP, r, OpType.BARRIER, 1, -1, 0, Duration.ofSeconds(10));
  }

  private Evidence found(JobOutput.Find find) {
    Map<Integer, RankProgress> answers = new HashMap<>();
    Set<Integer> silent = new HashSet<>();
    for (int r = 0; r < ranks.length; r++) {
      if ((said[(int) find.number()] & 1L << r) == 0) {
        silent.add(r);
      } else {
        answers.put(r, (ranks[r].isAway ? Said.ABSENT : Said.CALLED).progress);
      }
    }
    return find.known().and(answers, silent, Set.of());
  }

  private void log(LogEntry entry) {
    require(!log.contains(entry), "an entry is in the log once");
    List<LogEntry> all = new ArrayList<>(log);
    all.add(entry);
    log = all;
    StateHash hash = new StateHash();
    hash.add(logHash);
    hash.add(entry);
    logHash = hash.value();
  }

  Evidence collected(Evidence known) {
    int code = 0;
    for (Said said : published) {
      code = 8 * code + (said == null ? 0 : said.code);
    }
    return steps.collected(known, code, () -> collect(known));
  }

  private Evidence collect(Evidence known) {
    Evidence all = known;
    for (Set<Integer> needed = Blame.needed(all); !needed.isEmpty(); needed = Blame.needed(all)) {
      Map<Integer, RankProgress> answers = new HashMap<>();
      Set<Integer> silent = new HashSet<>();
      for (int r : needed) {
        Said said = published[r];
        if (said == null) {
          silent.add(r);
        } else {
          answers.put(r, said.by(r, ranks.length));
        }
      }
      all = all.and(answers, silent, Set.of());
    }
    return all;
  }

  private List<JobOutput> step(int r, boolean stoodStill, JobInput input) {
    ModelRank rank = ranks[r];
    rank.known = steps.after(rank.known, r, running(rank), stoodStill, input);
    return rank.known.outputs();
  }

  private void offer(int r, JobInput input) {
    ModelRank rank = ranks[r];
    boolean stoodStill = now < rank.stoodStillUntil;
    boolean leaves = false;
    for (JobOutput output : step(r, stoodStill, input)) {
      switch (output) {
        case JobOutput.Append append -> {
          require(rank.append == null && rank.reply == null, "one append at a time");
          rank.append = append;
        }
        case JobOutput.Fail _ -> {
          rank.isFailing = true;
          rank.settleBy = running(rank) + TIMES.answer().plus(TIMES.answers()).toNanos();
        }
        case JobOutput.Ask(Evidence known, boolean publishes, Duration limit) -> {
          rank.answers |= publishes;
          if (limit != null) {
            rank.collect = known;
            rank.collectLimit = limit.toNanos();
            rank.collectBy = running(rank) + rank.collectLimit;
          }
        }
        case JobOutput.LookUp(Evidence known) -> rank.lookUp = known;
        case JobOutput.Probe _ -> rank.probes = true;
        case JobOutput.Answer(long number, String _) -> rank.says = number;
        case JobOutput.Find find -> {
          rank.find = find;
          rank.findBy = running(rank) + TIMES.answer().toNanos();
        }
        case JobOutput.Adopt adopt -> {
          rank.adopt = adopt;
          rank.adoptBy = running(rank) + TIMES.verdict().toNanos();
        }
        case JobOutput.Tell tell -> rank.tell = tell;
        case JobOutput.Explain _ -> {
          require(!rank.isExplained, "what keeps an operation is explained once");
          require(running(rank) <= rank.explainBy, "what keeps an operation is explained in time");
          rank.isExplained = true;
        }
        case JobOutput.Settle(Evidence evidence, AgreedFailure verdict) -> {
          require(rank.verdict == null, "a group is settled once");
          require(running(rank) <= rank.settleBy, "a group is settled in time");
          require(
              evidence.alone() || !log.isEmpty() || rank.hasLostServer,
              "no group ends before the cause is in the log, unless its rank is alone");
          rank.settled = evidence;
          rank.verdict = verdict;
          leaves = !rank.isOpen;
        }
        default -> throw new AssertionError(output);
      }
    }
    if (leaves) {
      leave(r);
    }
  }

  static void require(boolean holds, String what) {
    if (!holds) {
      throw new Violation(what);
    }
  }

  /** Checks what holds once nothing more can happen. */
  @Override
  public void checkEnd() {
    new EndCheck(this).run();
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("at " + now + ", log " + log);
    for (int r = 0; r < ranks.length; r++) {
      ModelRank rank = ranks[r];
      text.append("\n  rank ").append(r).append(": ").append(rank.verdict);
      text.append(" by ").append(rank.settled);
    }
    return text.toString();
  }
}
