package dev.tutti.cuda.driver;

import dev.tutti.cuda.nccl.NcclResult;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** One rank's side of a fake communicator. */
final class PlayedCommunicator {
  final PlayedWorld world;
  final int rank;
  private final @Nullable PlayedCommunicator parent;
  private final AtomicLong collectives = new AtomicLong();
  private volatile @Nullable PlayedCommunicator child;
  private volatile boolean aborted;
  private volatile boolean busy;
  private volatile int failure;
  private int splits;
  private volatile @Nullable PlayedSplit splitting;

  /**
   * Adds a rank to a communicator.
   *
   * @param parent the communicator it is created from, if its calls block; else null
   */
  PlayedCommunicator(PlayedWorld world, int rank, @Nullable PlayedCommunicator parent) {
    this.world = world;
    this.rank = rank;
    this.parent = parent;
    world.join(rank);
  }

  boolean isBlocking() {
    return parent != null;
  }

  /** Returns whether all ranks have joined and no call is in progress. */
  boolean isIdle() {
    return world.isComplete() && !busy;
  }

  /** Returns whether this communicator, or the parent with which it shares aborts, was aborted. */
  boolean isAborted() {
    return aborted || (parent != null && parent.aborted);
  }

  void abort() {
    aborted = true;
  }

  void fail(int result) {
    failure = result;
  }

  /** Begins a call that stays in progress until its state is queried; returns the call's result. */
  int begin() {
    if (isBlocking()) {
      return NcclResult.SUCCESS;
    }
    busy = true;
    return NcclResult.IN_PROGRESS;
  }

  /** Returns the meeting of the next collective. */
  PlayedMeeting nextMeeting() {
    return world.meeting(collectives.getAndIncrement());
  }

  /** Begins a split. */
  PlayedSplit split(int color, int newRank, PlayedSplit.Maker maker) {
    PlayedSplit made = new PlayedSplit(this, splits++, color, newRank, maker);
    splitting = made;
    return made;
  }

  /** Begins to create the communicator whose calls block. */
  PlayedCommunicator block(int newRank) {
    PlayedCommunicator made = new PlayedCommunicator(world.blocking(), newRank, this);
    child = made;
    return made;
  }

  /**
   * Returns the communicator whose calls block, while some of its ranks have not joined; else null.
   */
  @Nullable PlayedCommunicator unfinishedChild() {
    PlayedCommunicator made = child;
    return made == null || made.world.isComplete() ? null : made;
  }

  int state() {
    PlayedSplit last = splitting;
    if (last != null && !last.isDone()) {
      return NcclResult.IN_PROGRESS;
    }
    if (failure != 0) {
      return failure;
    }
    if (!world.isComplete() || unfinishedChild() != null) {
      return NcclResult.IN_PROGRESS;
    }
    if (busy) {
      busy = false;
      return NcclResult.IN_PROGRESS;
    }
    return NcclResult.SUCCESS;
  }
}
