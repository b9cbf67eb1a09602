package dev.tutti.runtime.failure;

import org.jspecify.annotations.Nullable;

/**
 * What may happen next in a {@link JobModel}.
 *
 * @param rank the rank; -1 for all
 * @param peer the rank that it concerns; -1 if there is none
 * @param fault what happens to the rank; null unless that is the action
 */
record JobAction(Step kind, int rank, int peer, @Nullable Fault fault) {
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

  /** The kinds of actions. */
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
    MISS,
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

  JobAction(Step kind, int rank) {
    this(kind, rank, -1, null);
  }

  @Override
  public String toString() {
    return rank + " " + (fault == null ? kind : fault) + (peer < 0 ? "" : " " + peer);
  }
}
