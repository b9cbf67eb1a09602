package dev.tutti.runtime.failure;

import dev.tutti.runtime.failure.JobAction.Fault;
import dev.tutti.runtime.failure.JobAction.Step;
import dev.tutti.runtime.failure.JobModel.Wait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Finds what may happen next in a {@link JobModel}. */
final class PossibleActions {
  private final JobModel model;
  private final ModelRank[] ranks;
  private final Wait wait;
  private final int server;

  PossibleActions(JobModel model) {
    this.model = model;
    this.ranks = model.ranks;
    this.wait = model.wait;
    this.server = model.server;
  }

  /**
   * Returns what may happen next. What one rank receives does not depend on what the others do
   * next, nor they on it, so that if a rank can receive something, only its own actions are
   * returned: the other orders lead to the same states.
   */
  List<JobAction> all() {
    List<JobAction> next = new ArrayList<>();
    for (int r = 0; r < ranks.length; r++) {
      List<JobAction> own = new ArrayList<>();
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
    if (isQuiet && model.nextTime() != Long.MAX_VALUE) {
      next.add(new JobAction(Step.PASS_TIME, -1));
    }
    return next;
  }

  private boolean isAnyLocal(List<JobAction> actions) {
    for (JobAction action : actions) {
      if (isLocal(action)) {
        return true;
      }
    }
    return false;
  }

  private boolean isLocal(JobAction action) {
    return switch (action.kind()) {
      case WILL, READ, REPLY, LOOK_UP, TICK -> true;
      case COLLECT -> {
        ModelRank rank = ranks[action.rank()];
        yield !model.reachesStore(rank) || model.collected(rank.collect).silent().isEmpty();
      }
      default -> false;
    };
  }

  /** Adds what a rank does by itself at this time. */
  private void addSteps(int r, List<JobAction> to) {
    ModelRank rank = ranks[r];
    boolean answers = !model.isStoreSilent();
    if (rank.hasWill && answers && !ranks[server].isCrashed) {
      to.add(new JobAction(Step.WILL, r));
    }
    if (!rank.runs()) {
      return;
    }
    if (wait == Wait.SET_UP && !rank.isJoined && !rank.isAway) {
      to.add(new JobAction(Step.JOIN, r));
    }
    // What the store sent before it stood still has come; the next entry must be asked for.
    if (rank.read < model.log.size()
        && model.reachesStore(rank)
        && (answers || rank.read < rank.sent)) {
      to.add(new JobAction(Step.READ, r));
    }
    if (answers) {
      addAnswers(r, to);
    }
    if (rank.probes && answers) {
      to.add(new JobAction(Step.PROBE, r));
    }
    if (rank.append != null && answers) {
      to.add(new JobAction(Step.STORE, r));
    }
    if (rank.reply != null) {
      to.add(new JobAction(Step.REPLY, r));
    }
    if (rank.isLate && rank.reply instanceof JobInput.Written) {
      to.add(new JobAction(Step.MISS, r));
    }
    if (rank.answers && answers) {
      to.add(new JobAction(Step.ANSWER, r));
    }
    if (rank.collect != null
        && !rank.answers
        && answers
        && (!model.reachesStore(rank)
            || model.running(rank) >= rank.collectBy
            || model.collected(rank.collect).silent().isEmpty())) {
      to.add(new JobAction(Step.COLLECT, r));
    }
    if (rank.lookUp != null && answers) {
      to.add(new JobAction(Step.LOOK_UP, r));
    }
    if (rank.known.nextLimit() <= model.running(rank)) {
      to.add(new JobAction(Step.TICK, r));
    }
  }

  /** Adds what a rank does for questions. */
  private void addAnswers(int r, List<JobAction> to) {
    ModelRank rank = ranks[r];
    if (rank.says > 0) {
      to.add(new JobAction(Step.SAY, r));
    }
    if (rank.find != null
        && (!model.reachesStore(rank)
            || model.running(rank) >= rank.findBy
            || model.said[(int) rank.find.number()] == (1L << ranks.length) - 1)) {
      to.add(new JobAction(Step.FIND, r));
    }
    if (rank.adopt != null
        && (!model.reachesStore(rank)
            || model.running(rank) >= rank.adoptBy
            || (model.told & 1L << rank.adopt.number()) != 0)) {
      to.add(new JobAction(Step.ADOPT, r));
    }
    if (rank.tell != null) {
      to.add(new JobAction(Step.TELL, r));
    }
  }

  /** Adds what may happen at any time. */
  private void addSurprises(int r, List<JobAction> to) {
    ModelRank rank = ranks[r];
    if (rank.isCrashed) {
      return;
    }
    if (rank.pausedSince >= 0) {
      to.add(new JobAction(Step.RESUME, r));
      return;
    }
    if (server >= 0 && ranks[server].isCrashed && !rank.hasLostServer) {
      to.add(new JobAction(Step.LOSE_SERVER, r));
    }
    if (!rank.isFailing && !rank.hasLeft && rank.isJoined) {
      addFailures(r, to);
    }
    if (wait == Wait.SLOW && rank.explainBy == 0 && !rank.isFailing && !rank.hasLeft) {
      to.add(new JobAction(Step.QUESTION, r));
    }
    // Before the first fault, ranks that do not serve the store are alike.
    boolean isUnlike = model.faulty != 0 || r <= Math.max(0, server + 1);
    if (model.faultsLeft > 0 && isUnlike) {
      for (Fault fault : Fault.values()) {
        if (maySuffer(rank, fault)) {
          to.add(new JobAction(Step.FAULT, r, -1, fault));
        }
      }
    }
  }

  /** Adds how a rank may find that something is wrong. */
  private void addFailures(int r, List<JobAction> to) {
    ModelRank rank = ranks[r];
    boolean isCalling = !rank.isOpen || !rank.isAway;
    if (model.faulty != 0 && isCalling) {
      to.add(new JobAction(Step.TIME_OUT, r));
      for (int peer = 0; peer < ranks.length; peer++) {
        if (peer != r && model.isFaulty(peer)) {
          to.add(new JobAction(Step.TIME_OUT, r, peer, null));
        }
      }
    }
    if (isCalling && Arrays.stream(ranks).anyMatch(each -> each.isOdd)) {
      to.add(new JobAction(Step.MISMATCH, r));
    }
    for (int peer = 0; peer < ranks.length; peer++) {
      // A rank whose set-up fails ends its connections before it says why.
      boolean gaveUp = !rank.isOpen && ranks[peer].isFailing && !ranks[peer].isOpen;
      if (ranks[peer].isCrashed || gaveUp) {
        to.add(new JobAction(Step.LOSE_PEER, r, peer, null));
      }
    }
    if (!rank.isOpen && Arrays.stream(ranks).allMatch(PossibleActions::isConnected)) {
      to.add(new JobAction(Step.OPEN, r));
    }
  }

  private static boolean isConnected(ModelRank rank) {
    return rank.isJoined && !rank.isCrashed && (rank.isOpen || !rank.isFailing);
  }

  private boolean maySuffer(ModelRank rank, Fault fault) {
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

  /** Returns whether those that call something else are not more than half of the ranks. */
  private boolean mayOneMoreBeOdd() {
    long odd = Arrays.stream(ranks).filter(each -> each.isOdd).count();
    return 2 * (odd + 1) <= ranks.length;
  }
}
