package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
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
final class JobModel {
  /*
   * A call of the store has two actions, its effect and its reply, so a rank may be lost between
   * them. Time passes only when no rank has anything left to do at this time: the ranks that run are
   * fast beside the limits. A rank that is paused is arbitrarily slow; one that is cut off cannot use
   * the store, though its peers reach it. What happens to ranks from outside counts as a fault, and
   * their number is limited.
   */
  static final AnswerTimes TIMES = new AnswerTimes(Duration.ofNanos(100));
  private static final String GROUP = "0";
  private static final int MOST_ENTRIES = 64;

  /** What a rank may answer to those who ask where it stands. */
  private static final class Said {
    static final Said IN_SET_UP = new Said(1, RankProgress.ofSetUp(GROUP));
    static final Said ABSENT = new Said(2, RankProgress.ofCalls(List.of(), List.of()));
    static final Said CALLED = ofCall(3, OpType.BARRIER, -1);
    static final Said CALLED_OTHER = ofCall(4, OpType.BROADCAST, 0);
    static final Said RECEIVES = new Said(5, ABSENT.progress);
    static final Said CLOSED =
        new Said(
            6,
            new RankProgress(
                true, 0, "", "", "", Map.of(), Map.of(), List.of(), List.of(), List.of()));

    final int code;
    private final RankProgress progress;

    private Said(int code, RankProgress progress) {
      this.code = code;
      this.progress = progress;
    }

    private static Said ofCall(int code, OpType type, int root) {
      return new Said(
          code,
          RankProgress.ofCalls(List.of(new Issued(type, 1, "", "", -1, root, "")), List.of()));
    }

    /** Returns the answer of one of the ranks, each of which receives from the next one. */
    RankProgress by(int rank, int size) {
      return this != RECEIVES
          ? progress
          : new RankProgress(
              false,
              0,
              "",
              "",
              "",
              Map.of(),
              Map.of(),
              List.of(new Pending(OpType.RECV, 1, (rank + 1) % size, 0)),
              List.of(),
              List.of());
    }
  }

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

  /** Something that must never be. */
  static final class Violation extends RuntimeException {
    private static final long serialVersionUID = 1;

    Violation(String what) {
      super(what);
    }
  }

  /** What happens to a rank from outside. */
  enum Fault {
    CRASH,
    PAUSE,
    CUT_OFF,
    ABORT,
    STAY_AWAY,
    CALL_OTHER,
    CLOSE
  }

  /** What may happen next. */
  enum Step {
    FAULT,
    JOIN,
    OPEN,
    WILL,
    PROBE,
    QUESTION,
    SAY,
    FIND,
    ADOPT,
    TELL,
    READ,
    STORE,
    REPLY,
    ANSWER,
    COLLECT,
    LOOK_UP,
    TICK,
    TIME_OUT,
    MISMATCH,
    LOSE_PEER,
    LOSE_SERVER,
    RESUME,
    PASS_TIME
  }

  /**
   * One action.
   *
   * @param rank the rank; -1 for all
   * @param peer the rank that it concerns; -1 if there is none
   * @param fault what happens to the rank; null unless that is the action
   */
  record Action(Step kind, int rank, int peer, @Nullable Fault fault) {
    Action(Step kind, int rank) {
      this(kind, rank, -1, null);
    }

    @Override
    public String toString() {
      return rank + " " + (fault == null ? kind : fault) + (peer < 0 ? "" : " " + peer);
    }
  }

  /** A rank, and what its threads are about to do. */
  private static final class Rank {
    KnownSteps.Stepped known;
    boolean isCrashed;
    boolean isCutOff;
    boolean isAway;
    boolean isOdd;
    boolean isFailing;
    boolean hasLostServer;
    boolean isJoined;
    boolean isOpen;
    boolean hasLeft;
    boolean hasWill;
    boolean probes;
    long explainBy;
    boolean isExplained;
    long says;
    JobOutput.@Nullable Find find;
    long findBy;
    JobOutput.@Nullable Adopt adopt;
    long adoptBy;
    JobOutput.@Nullable Tell tell;
    long pausedSince = -1;
    long lost;
    long stoodStillUntil = Long.MIN_VALUE;
    int read;

    /** How many entries the store had sent before it stood still. */
    int sent;

    JobOutput.@Nullable Append append;
    @Nullable JobInput reply;
    boolean answers;
    long collectLimit;
    @Nullable Evidence collect;
    long collectBy;
    @Nullable Evidence lookUp;
    long settleBy;
    @Nullable Evidence settled;
    @Nullable AgreedFailure verdict;

    /** The hash of all this; 0 until somebody asks for it. */
    long hash;

    Rank(KnownSteps.Stepped known) {
      this.known = known;
    }

    Rank(Rank other) {
      known = other.known;
      isCrashed = other.isCrashed;
      isCutOff = other.isCutOff;
      isAway = other.isAway;
      isOdd = other.isOdd;
      isFailing = other.isFailing;
      hasLostServer = other.hasLostServer;
      isJoined = other.isJoined;
      isOpen = other.isOpen;
      hasLeft = other.hasLeft;
      hasWill = other.hasWill;
      probes = other.probes;
      explainBy = other.explainBy;
      isExplained = other.isExplained;
      says = other.says;
      find = other.find;
      findBy = other.findBy;
      adopt = other.adopt;
      adoptBy = other.adoptBy;
      tell = other.tell;
      sent = other.sent;
      pausedSince = other.pausedSince;
      lost = other.lost;
      stoodStillUntil = other.stoodStillUntil;
      read = other.read;
      append = other.append;
      reply = other.reply;
      answers = other.answers;
      collectLimit = other.collectLimit;
      collect = other.collect;
      collectBy = other.collectBy;
      lookUp = other.lookUp;
      settleBy = other.settleBy;
      settled = other.settled;
      verdict = other.verdict;
    }

    boolean runs() {
      return !isCrashed && pausedSince < 0;
    }

    long hash() {
      if (hash == 0) {
        StateHash all = new StateHash();
        addTo(all);
        hash = all.value();
      }
      return hash;
    }

    private void addTo(StateHash all) {
      if (isCrashed) {
        all.add(hasWill ? 1 : 0);
        return;
      }
      all.add(
          (isCutOff ? 1 : 0)
              + (isAway ? 2 : 0)
              + (isOdd ? 4 : 0)
              + (isFailing ? 8 : 0)
              + (hasLostServer ? 16 : 0)
              + (answers ? 32 : 0)
              + (settled != null && settled.alone() ? 64 : 0)
              + (isJoined ? 128 : 0)
              + (isOpen ? 256 : 0)
              + (hasLeft ? 512 : 0)
              + (probes ? 1024 : 0)
              + (read < sent ? 2048 : 0)
              + (isExplained ? 4096 : 0));
      all.add(isExplained ? 0 : explainBy);
      all.add(says);
      all.add(find == null ? 0 : findBy);
      all.add(adopt == null ? 0 : adoptBy);
      all.add(tell == null ? 0 : tell.number());
      all.add(verdict == null ? settleBy : -5 - verdict.failedRank());
      all.add(pausedSince);
      all.add(lost);
      all.add(stoodStillUntil);
      all.add(read);
      all.add(append);
      all.add(reply);
      all.add(collect);
      all.add(collect == null ? 0 : collectLimit);
      all.add(collect == null || answers ? 0 : collectBy);
      all.add(lookUp);
      all.add(known.hash());
    }
  }

  private final Rank[] ranks;
  private final KnownSteps steps;

  /** What each rank published; shared with other states. */
  private @Nullable Said[] published;

  /**
   * For each question, by its place in the log, what each rank has answered, one bit each; shared
   * with other states.
   */
  private long[] said;

  /** The questions, by their places in the log, whose findings are in the store, one bit each. */
  private long told;

  /** The entries; shared with other states. */
  private List<LogEntry> log;

  private long logHash;
  private final Wait wait;
  private final int server;
  private int faultsLeft;

  /** The ranks to which something happened, one bit each. */
  private int faulty;

  /** Whether nothing has happened but that ranks called something else. */
  private boolean allAnswer = true;

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
    ranks = new Rank[size];
    published = new Said[size];
    this.server = server;
    faultsLeft = faults;
    for (int r = 0; r < size; r++) {
      ranks[r] = new Rank(KnownSteps.first(new JobState(r, server, TIMES, 0)));
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
  long fingerprint() {
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
    for (Rank rank : ranks) {
      all.add(rank.hash());
    }
    return all.value();
  }

  /**
   * Returns what may happen next. What one rank learns does not depend on what the others do next,
   * nor they on it, so that if a rank can learn something, only its own actions are returned: the
   * other orders lead to the same states.
   */
  List<Action> actions() {
    List<Action> next = new ArrayList<>();
    for (int r = 0; r < ranks.length; r++) {
      List<Action> own = new ArrayList<>();
      addSteps(r, own);
      if (isAnyLocal(own)) {
        addSurprises(r, own);
        if (server >= 0 && server != r) {
          // The end or a pause of the server does concern a rank that reads from the store.
          addSurprises(server, own);
        }
        return own;
      }
      next.addAll(own);
    }
    boolean isQuiet = next.isEmpty();
    for (int r = 0; r < ranks.length; r++) {
      addSurprises(r, next);
    }
    if (isQuiet && nextTime() != Long.MAX_VALUE) {
      next.add(new Action(Step.PASS_TIME, -1));
    }
    return next;
  }

  private boolean isAnyLocal(List<Action> actions) {
    for (Action action : actions) {
      if (isLocal(action)) {
        return true;
      }
    }
    return false;
  }

  private boolean isLocal(Action action) {
    return switch (action.kind) {
      case WILL, READ, REPLY, LOOK_UP, TICK -> true;
      case COLLECT -> {
        Rank rank = ranks[action.rank];
        yield !reachesStore(rank) || collected(rank.collect).silent().isEmpty();
      }
      default -> false;
    };
  }

  private boolean reachesStore(Rank rank) {
    return !rank.isCutOff && (server < 0 || !ranks[server].isCrashed);
  }

  private boolean isStoreSilent() {
    return server >= 0 && !ranks[server].isCrashed && ranks[server].pausedSince >= 0;
  }

  /** Adds what a rank does by itself at this time. */
  private void addSteps(int r, List<Action> to) {
    Rank rank = ranks[r];
    boolean answers = !isStoreSilent();
    if (rank.hasWill && answers && !ranks[server].isCrashed) {
      to.add(new Action(Step.WILL, r));
    }
    if (!rank.runs()) {
      return;
    }
    if (wait == Wait.SET_UP && !rank.isJoined && !rank.isAway) {
      to.add(new Action(Step.JOIN, r));
    }
    // What the store sent before it stood still has come; the next entry must be asked for.
    if (rank.read < log.size() && reachesStore(rank) && (answers || rank.read < rank.sent)) {
      to.add(new Action(Step.READ, r));
    }
    if (answers) {
      addAnswers(r, to);
    }
    if (rank.probes && answers) {
      to.add(new Action(Step.PROBE, r));
    }
    if (rank.append != null && answers) {
      to.add(new Action(Step.STORE, r));
    }
    if (rank.reply != null) {
      to.add(new Action(Step.REPLY, r));
    }
    if (rank.answers && answers) {
      to.add(new Action(Step.ANSWER, r));
    }
    if (rank.collect != null
        && !rank.answers
        && answers
        && (!reachesStore(rank)
            || running(rank) >= rank.collectBy
            || collected(rank.collect).silent().isEmpty())) {
      to.add(new Action(Step.COLLECT, r));
    }
    if (rank.lookUp != null && answers) {
      to.add(new Action(Step.LOOK_UP, r));
    }
    if (rank.known.nextLimit() <= running(rank)) {
      to.add(new Action(Step.TICK, r));
    }
  }

  /** Adds what a rank does for questions. */
  private void addAnswers(int r, List<Action> to) {
    Rank rank = ranks[r];
    if (rank.says > 0) {
      to.add(new Action(Step.SAY, r));
    }
    if (rank.find != null
        && (!reachesStore(rank)
            || running(rank) >= rank.findBy
            || said[(int) rank.find.number()] == (1L << ranks.length) - 1)) {
      to.add(new Action(Step.FIND, r));
    }
    if (rank.adopt != null
        && (!reachesStore(rank)
            || running(rank) >= rank.adoptBy
            || (told & 1L << rank.adopt.number()) != 0)) {
      to.add(new Action(Step.ADOPT, r));
    }
    if (rank.tell != null) {
      to.add(new Action(Step.TELL, r));
    }
  }

  /** Adds what may happen at any time. */
  private void addSurprises(int r, List<Action> to) {
    Rank rank = ranks[r];
    if (rank.isCrashed) {
      return;
    }
    if (rank.pausedSince >= 0) {
      to.add(new Action(Step.RESUME, r));
      return;
    }
    if (server >= 0 && ranks[server].isCrashed && !rank.hasLostServer) {
      to.add(new Action(Step.LOSE_SERVER, r));
    }
    if (!rank.isFailing && !rank.hasLeft && rank.isJoined) {
      addFailures(r, to);
    }
    if (wait == Wait.SLOW && rank.explainBy == 0 && !rank.isFailing && !rank.hasLeft) {
      to.add(new Action(Step.QUESTION, r));
    }
    // Before the first fault, ranks that do not serve the store are alike.
    boolean isUnlike = faulty != 0 || r <= Math.max(0, server + 1);
    if (faultsLeft > 0 && isUnlike) {
      for (Fault fault : Fault.values()) {
        if (maySuffer(rank, fault)) {
          to.add(new Action(Step.FAULT, r, -1, fault));
        }
      }
    }
  }

  /** Adds how a rank may find that something is wrong. */
  private void addFailures(int r, List<Action> to) {
    Rank rank = ranks[r];
    boolean isCalling = !rank.isOpen || !rank.isAway;
    if (faulty != 0 && isCalling) {
      to.add(new Action(Step.TIME_OUT, r));
      for (int peer = 0; peer < ranks.length; peer++) {
        if (peer != r && isFaulty(peer)) {
          to.add(new Action(Step.TIME_OUT, r, peer, null));
        }
      }
    }
    if (isCalling && Arrays.stream(ranks).anyMatch(each -> each.isOdd)) {
      to.add(new Action(Step.MISMATCH, r));
    }
    for (int peer = 0; peer < ranks.length; peer++) {
      // A rank whose set-up fails ends its connections before it says why.
      boolean gaveUp = !rank.isOpen && ranks[peer].isFailing && !ranks[peer].isOpen;
      if (ranks[peer].isCrashed || gaveUp) {
        to.add(new Action(Step.LOSE_PEER, r, peer, null));
      }
    }
    if (!rank.isOpen && Arrays.stream(ranks).allMatch(JobModel::isConnected)) {
      to.add(new Action(Step.OPEN, r));
    }
  }

  private static boolean isConnected(Rank rank) {
    return rank.isJoined && !rank.isCrashed && (rank.isOpen || !rank.isFailing);
  }

  private boolean maySuffer(Rank rank, Fault fault) {
    if (rank.hasLeft && (server < 0 || !rank.equals(ranks[server]))) {
      return false;
    }
    return switch (fault) {
      case CRASH, PAUSE, CUT_OFF -> true;
      case ABORT -> !rank.isFailing && rank.isJoined && !rank.hasLeft;
      case CLOSE ->
          rank.isOpen && !rank.isFailing && !rank.hasLeft && wait != Wait.MESSAGES && !rank.isOdd;
      case STAY_AWAY ->
          !rank.isFailing && !rank.isOdd && !rank.hasLeft && rank.isJoined == rank.isOpen;
      case CALL_OTHER ->
          !rank.isFailing && !rank.isAway && wait == Wait.MISMATCH && mayOneMoreBeOdd();
    };
  }

  /** Tells whether those that call something else are not more than half of the ranks. */
  private boolean mayOneMoreBeOdd() {
    long odd = Arrays.stream(ranks).filter(each -> each.isOdd).count();
    return 2 * (odd + 1) <= ranks.length;
  }

  private long running(Rank rank) {
    return now - rank.lost;
  }

  private long nextTime() {
    long next = Long.MAX_VALUE;
    boolean isPaused = false;
    for (Rank rank : ranks) {
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

  /** Returns the state after an action. */
  JobModel after(Action action) {
    JobModel next = new JobModel(this);
    next.run(action);
    return next;
  }

  private void run(Action action) {
    if (action.kind == Step.PASS_TIME) {
      now = nextTime();
      return;
    }
    int r = action.rank;
    Rank rank = own(r);
    switch (action.kind) {
      case FAULT -> suffer(r, Objects.requireNonNull(action.fault));
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
        offer(r, reply);
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
      case TIME_OUT -> fail(r, Kind.TIMEOUT, action.peer);
      case MISMATCH -> fail(r, Kind.MISMATCH, -1);
      case LOSE_PEER -> fail(r, Kind.PEER_LOST, action.peer);
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
    Rank rank = ranks[r];
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
  private Rank own(int r) {
    ranks[r] = new Rank(ranks[r]);
    return ranks[r];
  }

  private void suffer(int r, Fault fault) {
    Rank rank = ranks[r];
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
    Rank rank = r == server ? ranks[r] : own(r);
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

  private boolean isFaulty(int r) {
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
    Rank rank = ranks[r];
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

  private void store(Rank rank) {
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
    List<LogEntry> all = new ArrayList<>(log);
    all.add(entry);
    log = all;
    StateHash hash = new StateHash();
    hash.add(logHash);
    hash.add(entry);
    logHash = hash.value();
  }

  private Evidence collected(Evidence known) {
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
    Rank rank = ranks[r];
    rank.known = steps.after(rank.known, r, running(rank), stoodStill, input);
    return rank.known.outputs();
  }

  private void offer(int r, JobInput input) {
    Rank rank = ranks[r];
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

  private void require(boolean holds, String what) {
    if (!holds) {
      throw new Violation(what);
    }
  }

  /** Checks what holds once nothing more can happen. */
  void checkEnd() {
    AgreedFailure agreed = null;
    for (int r = 0; r < ranks.length; r++) {
      Rank rank = ranks[r];
      AgreedFailure verdict = rank.verdict;
      if (rank.isCrashed) {
        continue;
      }
      require(rank.isFailing == (verdict != null), "rank " + r + " waits for ever");
      require(rank.explainBy == 0 || rank.isExplained || rank.hasLeft, "a question has no answer");
      if (verdict == null) {
        continue;
      }
      int blamed = verdict.failedRank();
      // A rank that is cut off cannot know that it is, and takes the server for silent.
      boolean mayBlame = isFaulty(blamed) || (rank.isCutOff && blamed == server);
      require(blamed < 0 || mayBlame, "rank " + r + " blames " + verdict);
      FailureEvent event = verdict.event();
      boolean isOfWait = event.kind() == Kind.TIMEOUT && event.failedRank() != event.reporter();
      if (rank.settled.alone()) {
        require(
            !isOfWait
                || rank.settled.paused()
                || server < 0
                || server == event.reporter()
                || blamed == server,
            "rank " + r + " does not name the server of a silent store");
        require(
            rank.isCutOff || isFaulty(server),
            "rank " + r + " decides alone though the store answers");
      } else {
        require(
            event.kind() != Kind.MISMATCH
                || !allAnswer
                || soleOddRank() < 0
                || blamed == soleOddRank(),
            "the rank that called something else is not named");
        boolean isAnyAbsent =
            event.sequence() > 0 && Arrays.asList(published).contains(Said.ABSENT);
        require(
            !isOfWait || !isAnyAbsent || blamed >= 0, "nobody is named though a rank is absent");
        require(
            agreed == null || agreed.failedRank() == blamed,
            "ranks disagree: " + agreed + " and " + verdict);
        agreed = verdict;
      }
    }
  }

  /** Returns the rank whose call all others can tell from their own, or -1. */
  private int soleOddRank() {
    List<@Nullable Said> said = Arrays.asList(published);
    int odd = said.indexOf(Said.CALLED_OTHER);
    boolean isSole =
        odd == said.lastIndexOf(Said.CALLED_OTHER)
            && 2 * Collections.frequency(said, Said.CALLED) > ranks.length;
    return isSole ? odd : -1;
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("at " + now + ", log " + log);
    for (int r = 0; r < ranks.length; r++) {
      Rank rank = ranks[r];
      text.append("\n  rank ").append(r).append(": ").append(rank.verdict);
      text.append(" by ").append(rank.settled);
    }
    return text.toString();
  }
}
