package dev.tutti.cuda.driver;

import dev.tutti.cuda.nccl.NcclResult;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** One rank's side of a played communicator. */
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
   * Brings a rank to a communicator.
   *
   * @param parent that it is made of, if its calls block; else null
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

  /** Tells whether all ranks are there, and no call is in progress. */
  boolean isIdle() {
    return world.isComplete() && !busy;
  }

  /** Tells whether this was aborted, or what it shares that with. */
  boolean isAborted() {
    return aborted || (parent != null && parent.aborted);
  }

  void abort() {
    aborted = true;
  }

  void fail(int result) {
    failure = result;
  }

  /** Begins a call, which is in progress until somebody asks; returns its result. */
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

  /** Begins to make the one whose calls block. */
  PlayedCommunicator block(int newRank) {
    PlayedCommunicator made = new PlayedCommunicator(world.blocking(), newRank, this);
    child = made;
    return made;
  }

  /** Returns the one whose calls block while its ranks have not all come; else null. */
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
