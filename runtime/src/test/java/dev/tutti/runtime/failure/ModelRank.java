package dev.tutti.runtime.failure;

import org.jspecify.annotations.Nullable;

/** A rank of a {@link JobModel}, and what its threads are about to do. */
final class ModelRank implements Cloneable {
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

  /** Whether the call of the store has run out of time because this rank stood still. */
  boolean isLate;

  boolean answers;
  long collectLimit;
  @Nullable Evidence collect;
  long collectBy;
  @Nullable Evidence lookUp;
  long settleBy;
  @Nullable Evidence settled;
  @Nullable AgreedFailure verdict;

  /** The hash of all this; 0 until it is needed. */
  private long hash;

  ModelRank(KnownSteps.Stepped known) {
    this.known = known;
  }

  /** Creates a copy, which changes apart from this. */
  ModelRank copy() {
    try {
      ModelRank copy = (ModelRank) clone();
      copy.hash = 0;
      return copy;
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }

  boolean runs() {
    return !isCrashed && pausedSince < 0;
  }

  /** Returns whether an entry is on its way into the log, or in it unknown to this rank. */
  boolean isAppending() {
    return append != null || reply instanceof JobInput.Written;
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
            + (isExplained ? 4096 : 0)
            + (isLate && isAppending() ? 8192 : 0));
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
