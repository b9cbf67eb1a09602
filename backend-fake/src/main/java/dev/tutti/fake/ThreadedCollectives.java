package dev.tutti.fake;

import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.spi.Time;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Runs the collectives of a threaded group, one round after another. */
final class ThreadedCollectives {
  /*
   * Every rank adds its call to the current round and waits until all have arrived. The data then
   * moves in phases, and after each phase all ranks wait for each other. In a small round, the rank
   * that arrived last moves the data for all ranks: one wake-up is cheaper than two. In a large
   * round, each rank moves its own part.
   *
   * The outcome of a round is decided under the lock: either the last rank finishes the last phase
   * and all succeed, or a failure is recorded first and none does. A rank whose deadline passes
   * fails the round for all ranks. Nothing is written to the tensors of a rank that has left: in a
   * large round each rank writes only its own, and while one thread moves a small round no rank
   * leaves it.
   */
  private static final long SERIAL_BYTES = 1 << 20;

  /** How long ranks that disagree wait for the others, to make the report complete. */
  private static final long MISMATCH_GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private final Hub hub;
  private final int size;
  private final Time time;
  private Round current;

  ThreadedCollectives(Hub hub, int size) {
    this.hub = hub;
    this.size = size;
    this.time = hub.time();
    this.current = new Round(size, time);
  }

  /** Returns whether any rank is waiting for the given rank. */
  boolean isAwaited(int rank) {
    assert hub.isLockHeld();
    return current.hasBegun() && current.isMissing(rank);
  }

  /**
   * Takes part in the next round.
   *
   * @return the calls of all ranks
   */
  List<Contribution> exchange(int rank, Operation op, Contribution own, Round.Mover mover)
      throws Exception {
    Round round;
    boolean moveAll;
    hub.lock();
    try {
      round = arrive(rank, own, mover);
      moveAll = round.isFull() && round.serial;
      if (!moveAll) {
        awaitStage(round, rank, 0, op);
        if (round.isDone()) {
          return round.calls();
        }
      }
    } finally {
      hub.unlock();
    }
    if (moveAll) {
      moveAll(round, rank);
    } else {
      for (int phase = 0; phase < round.phases(); phase++) {
        moveOwn(round, phase, rank, op);
      }
    }
    return round.calls();
  }

  /** Adds a call to the current round; the last rank to arrive opens it. */
  private Round arrive(int rank, Contribution call, Round.Mover mover) throws Exception {
    assert hub.isLockHeld();
    hub.check(rank);
    for (int peer = 0; peer < size; peer++) {
      if (hub.hasLeft(peer)) {
        throw hub.closed(peer);
      }
    }
    Round round = current;
    round.arrive(rank, call, mover);
    if (round.isFull()) {
      current = new Round(size, time);
      String misfit = round.mismatchSince == 0 ? Movement.misfit(round.calls()) : null;
      if (round.mismatchSince != 0 || misfit != null) {
        failMismatch(round, misfit);
        hub.check(rank);
      }
      if (round.bytes() <= SERIAL_BYTES) {
        round.serial = true;
      } else {
        round.stage = 0;
        hub.changed();
      }
    } else if (round.mismatchSince != 0) {
      hub.changed();
    }
    return round;
  }

  private void failMismatch(Round round, @Nullable String misfit) {
    String message =
        "the ranks of group "
            + hub.group()
            + " disagree: "
            + (misfit == null ? "" : misfit + "; ")
            + round.report();
    hub.fail(() -> new PeerMismatchException(message), -1);
  }

  private void moveAll(Round round, int rank) throws Exception {
    List<Contribution> calls = round.calls();
    int peer = 0;
    Throwable failed = null;
    try {
      for (int phase = 0; phase < round.phases(); phase++) {
        for (peer = 0; peer < size; peer++) {
          round.mover(peer).move(phase, peer, calls);
        }
      }
    } catch (Throwable e) { // an Error too: the others wait for this thread
      failed = e;
    }
    hub.lock();
    try {
      round.serial = false;
      if (failed == null) {
        round.stage = round.phases();
        hub.changed();
      } else {
        failMove(round, peer, failed);
        hub.check(rank);
      }
    } finally {
      hub.unlock();
    }
  }

  private void moveOwn(Round round, int phase, int rank, Operation op) throws Exception {
    Throwable failed = null;
    try {
      round.mover(rank).move(phase, rank, round.calls());
    } catch (Throwable e) { // an Error too: the others wait for this thread
      failed = e;
    }
    hub.lock();
    try {
      hub.check(rank);
      if (failed != null) {
        failMove(round, rank, failed);
        hub.check(rank);
      }
      if (round.finish(rank)) {
        hub.changed();
      } else {
        awaitStage(round, rank, phase + 1, op);
      }
    } finally {
      hub.unlock();
    }
  }

  /**
   * Fails the group because the part of a rank, or of one from which it takes data, could not be
   * moved.
   */
  private void failMove(Round round, int mover, Throwable cause) {
    int freed = round.freed();
    int blamed = freed >= 0 ? freed : mover;
    String message =
        "the data of rank " + blamed + " could not be moved: " + cause + "; " + round.report();
    hub.fail(() -> new PeerLostException(blamed, message, cause), blamed);
  }

  /** Waits until a round has reached a stage. */
  private void awaitStage(Round round, int rank, int stage, Operation op) throws Exception {
    assert hub.isLockHeld();
    while (round.stage < stage) {
      if (round.serial) {
        // This rank's data is being moved, which does not wait for anything.
        hub.await(time.nanoTime() + TimeUnit.SECONDS.toNanos(1));
        continue;
      }
      hub.check(rank);
      long deadline = op.deadlineNanos();
      if (round.mismatchSince != 0) {
        long grace = round.mismatchSince + MISMATCH_GRACE_NANOS;
        if (grace - time.nanoTime() <= 0) {
          failMismatch(round, null);
          continue;
        }
        deadline = deadline - grace < 0 ? deadline : grace;
      }
      if (!hub.await(deadline) && op.deadlineNanos() - time.nanoTime() <= 0) {
        if (round.stage < stage && !round.serial) {
          // All ranks may have come meanwhile, and the group has failed since they disagree.
          hub.check(rank);
          Supplier<Exception> late = round.late(rank);
          // Fails before the messages that end because of it.
          hub.afterUnlock(() -> op.fail(late.get(), -1));
          hub.fail(late, -1);
        }
      }
    }
  }
}
