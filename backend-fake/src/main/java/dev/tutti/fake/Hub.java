package dev.tutti.fake;

import dev.tutti.CollectiveException;
import dev.tutti.StoreException;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The meeting place of the ranks of one threaded group: it holds which ranks are present, and
 * whether the group still works.
 */
final class Hub {
  /*
   * A single lock guards this object, the current round of collectives and the mailboxes. The lock
   * is held only for bookkeeping, never while data moves. Operations and listeners are not called
   * under the lock either: such calls are recorded, and unlock() runs them after releasing the
   * lock.
   *
   * The first failure is kept. It is kept as a supplier of exceptions, because each thread needs
   * its own.
   */
  private static final long CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** The key under which the ranks of a group find its hub. */
  static final String KEY = "threaded/hub";

  private static final List<String> ANY_KEY = List.of(KEY);

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final String group;
  private final int size;
  private final Time time;
  private final @Nullable BackendContext[] members;
  private final @Nullable Throwable[] aborted;
  private final boolean[] left;
  private final ThreadedCollectives collectives;
  private final Mailbox mailbox;
  private final List<SharedBlock> blocks = new ArrayList<>();
  private List<Runnable> afterUnlock = new ArrayList<>();
  private int joined;
  private int leftCount;
  private int lastLeft = -1;
  private @Nullable Supplier<Exception> failure;

  Hub(String group, int size, Time time) {
    this.group = group;
    this.size = size;
    this.time = time;
    this.members = new BackendContext[size];
    this.aborted = new Throwable[size];
    this.left = new boolean[size];
    this.collectives = new ThreadedCollectives(this, size);
    this.mailbox = new Mailbox(this, size);
  }

  int size() {
    return size;
  }

  String group() {
    return group;
  }

  Time time() {
    return time;
  }

  ThreadedCollectives collectives() {
    return collectives;
  }

  Mailbox mailbox() {
    return mailbox;
  }

  void lock() {
    lock.lock();
  }

  /** Releases the lock and runs the tasks recorded meanwhile. */
  void unlock() {
    List<Runnable> run = afterUnlock;
    if (run.isEmpty()) {
      lock.unlock();
      return;
    }
    afterUnlock = new ArrayList<>();
    lock.unlock();
    run.forEach(Runnable::run);
  }

  /** Returns whether the calling thread has the lock. */
  boolean isLockHeld() {
    return lock.isHeldByCurrentThread();
  }

  /** Records a task that the current holder of the lock runs after releasing it. */
  void afterUnlock(Runnable task) {
    assert isLockHeld();
    afterUnlock.add(task);
  }

  /** Wakes all waiting ranks. */
  void changed() {
    assert isLockHeld();
    changed.signalAll();
  }

  /** Waits for a change, even if interrupted; returns false if the deadline has passed. */
  boolean await(long deadlineNanos) {
    assert isLockHeld();
    return Uninterrupted.await(time, lock, changed, deadlineNanos);
  }

  /**
   * Adds a rank and waits for all others, as long as its store is open: the store is closed by
   * whichever part of the program is notified that another rank has failed.
   */
  void join(BackendContext context, long deadlineNanos) throws Exception {
    enter(context);
    while (!isComplete(context, deadlineNanos)) {
      try {
        context.store().check(ANY_KEY);
      } catch (StoreException e) {
        giveUp(context.rank(), e);
        throw e;
      }
    }
  }

  private void enter(BackendContext context) {
    int rank = context.rank();
    lock();
    try {
      if (context.size() != size || members[rank] != null) {
        throw new IllegalArgumentException(
            "rank %s of %s cannot join threaded group %s of %s%s"
                .formatted(
                    rank,
                    context.size(),
                    group,
                    size,
                    context.size() == size ? ": it has already joined" : ""));
      }
      members[rank] = context;
      joined++;
      changed();
    } finally {
      unlock();
    }
  }

  /** Returns whether all ranks are present; waits for them, but only for a short time. */
  private boolean isComplete(BackendContext context, long deadlineNanos) throws Exception {
    int rank = context.rank();
    lock();
    try {
      if (joined == size) {
        return true;
      }
      check(rank);
      long left = deadlineNanos - time.nanoTime();
      if (left <= 0) {
        String missing = Ranks.list(size, peer -> members[peer] == null);
        String text =
            missing
                + " did not join threaded group "
                + group
                + " within "
                + Printable.time(context.timeout());
        fail(() -> new TimeoutException(text), -1);
        check(rank);
      }
      long until = time.nanoTime() + Math.min(left, CHECK_NANOS);
      while (joined < size && failure == null && await(until)) {
        // Another rank joined.
      }
      return joined == size;
    } finally {
      unlock();
    }
  }

  /** Fails the group, unless it has already failed, because a rank has given up joining it. */
  private void giveUp(int rank, Exception cause) {
    lock();
    try {
      String text = "rank " + rank + " gave up joining group " + group + ": " + cause;
      fail(() -> new PeerLostException(rank, text, cause), rank);
    } finally {
      unlock();
    }
  }

  /** Throws the failure, if the group or this rank's part of it has failed. */
  void check(int rank) throws Exception {
    assert isLockHeld();
    Throwable cause = failure(rank);
    if (cause instanceof Exception exception) {
      throw exception;
    }
    if (cause != null) {
      throw new IllegalStateException("rank " + rank + " was aborted", cause);
    }
  }

  /** Returns the failure, if the group or this rank's part of it has failed, or null. */
  @Nullable Throwable failure(int rank) {
    assert isLockHeld();
    Throwable cause = aborted[rank];
    Supplier<Exception> first = failure;
    return cause != null || first == null ? cause : first.get();
  }

  boolean hasLeft(int rank) {
    return left[rank];
  }

  /** Returns whether all other ranks have left. */
  boolean isAlone(int rank) {
    assert isLockHeld();
    return leftCount - (left[rank] ? 1 : 0) == size - 1;
  }

  /** Returns the rank that left last, or -1. */
  int lastLeft() {
    assert isLockHeld();
    return lastLeft;
  }

  /**
   * Fails the group, unless it has already failed.
   *
   * @param cause creates the exception for each rank
   * @param blamed the rank to blame, or -1
   * @return whether this is the first failure
   */
  boolean fail(Supplier<Exception> cause, int blamed) {
    assert isLockHeld();
    changed();
    if (failure != null) {
      return false;
    }
    failure = cause;
    for (Operation op : mailbox.drain()) {
      afterUnlock(() -> op.fail(cause.get(), blamed));
    }
    for (SharedBlock block : blocks) {
      afterUnlock(() -> block.fail(cause));
    }
    blocks.clear();
    return true;
  }

  /**
   * Fails one rank's waits with the given cause, and all other ranks' waits because of it. After
   * this returns, messages are no longer copied.
   */
  void abort(int rank, Throwable cause) {
    failAll(rank, cause);
    mailbox.awaitMoves();
  }

  private void failAll(int rank, Throwable cause) {
    lock();
    try {
      if (aborted[rank] != null || left[rank]) {
        return;
      }
      aborted[rank] = cause;
      int blamed = blame(cause, rank);
      String text = "rank " + rank + " gave up: " + cause;
      Supplier<Exception> lost = () -> new PeerLostException(blamed, text, cause);
      if (fail(lost, blamed)) {
        for (int peer = 0; peer < size; peer++) {
          BackendContext member = members[peer];
          if (peer != rank && member != null && !left[peer]) {
            afterUnlock(() -> member.onFailure().failed(lost.get(), blamed));
          }
        }
      }
    } finally {
      unlock();
    }
  }

  private static int blame(Throwable cause, int rank) {
    if (cause instanceof PeerLostException lost) {
      return lost.peer();
    }
    return cause instanceof CollectiveException failed && failed.failedRank().isPresent()
        ? failed.failedRank().getAsInt()
        : rank;
  }

  /** Removes a rank; a rank that waits for it fails, and the others continue. */
  void leave(int rank) {
    lock();
    try {
      if (left[rank]) {
        return;
      }
      left[rank] = true;
      leftCount++;
      lastLeft = rank;
      if (collectives.isAwaited(rank)) {
        fail(() -> closed(rank), rank);
      }
      for (Operation op : mailbox.drainPeer(rank)) {
        afterUnlock(() -> op.fail(closed(rank), rank));
      }
    } finally {
      unlock();
    }
  }

  PeerLostException closed(int rank) {
    return new PeerLostException(rank, "rank " + rank + " closed group " + group, null);
  }

  /** Registers a block to be notified of the group's failure. */
  void watch(SharedBlock block) {
    lock();
    try {
      Supplier<Exception> first = failure;
      if (first == null) {
        blocks.add(block);
      } else {
        afterUnlock(() -> block.fail(first));
      }
    } finally {
      unlock();
    }
  }

  void unwatch(SharedBlock block) {
    lock();
    try {
      blocks.remove(block);
    } finally {
      unlock();
    }
  }
}
