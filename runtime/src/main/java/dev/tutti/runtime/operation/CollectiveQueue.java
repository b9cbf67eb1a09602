package dev.tutti.runtime.operation;

import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Time;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** Runs the collectives of a group one at a time, in the order in which they were issued. */
public final class CollectiveQueue {
  /*
   * "gate" holds the number of operations issued, and two bits. While SHUT is clear, nothing runs
   * except perhaps one caller inline (INLINE is set), nothing is queued and no thread waits. A
   * caller then enters and leaves with one compare-and-set each, which on entry also yields the
   * number. Everything else first shuts the gate, under "lock", and opens it again when the queue
   * is empty. A caller that finds the gate shut takes the lock. This includes the caller that
   * entered while the gate was open, so that waiting threads are notified that it leaves.
   *
   * Under the lock at most one thread runs: the caller of INLINE, or the thread that is "owner",
   * which is a caller or the worker. An operation gets its number and its place in the order
   * together, so that the numbers follow the order. No user or backend code runs under the lock. A
   * number that is taken back is followed by those of queued operations only, which move up.
   *
   * An operation may be queued on hold: it has its number and its place, but the worker does not
   * run it until its issuer, which is notifying listeners, releases it.
   *
   * "work" wakes the worker, "free" wakes threads that wait for a turn or for idleness, and
   * "issued" those that wait for a number; while one of these waits, the gate is shut. The worker
   * starts with the first operation that needs it, and ends when it has had nothing to do for a
   * while or the queue has stopped.
   */
  /** Returned instead of a number when the operation must queue. */
  public static final long TAKEN = 0;

  /** Returned instead of a number when the queue has stopped. */
  public static final long STOPPED = -1;

  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private static final long INLINE = 1;
  private static final long SHUT = 2;
  private static final int NUMBER_SHIFT = 2;
  private static final VarHandle GATE;

  static {
    try {
      GATE = MethodHandles.lookup().findVarHandle(CollectiveQueue.class, "gate", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private volatile long gate;

  /** The thread of INLINE; other threads see any value except themselves. */
  private @Nullable Thread inline;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  private final Condition free = lock.newCondition();
  private final Condition issued = lock.newCondition();
  private final ArrayDeque<Queued> queue = new ArrayDeque<>();
  private final String threadName;
  private final Consumer<GroupOperation> runner;
  private final Time time;
  private @Nullable Thread owner;
  private @Nullable Thread worker;
  private int waiting;
  private boolean stopped;

  private static final class Queued {
    final GroupOperation op;
    @Nullable Thread heldBy;

    Queued(GroupOperation op, @Nullable Thread heldBy) {
      this.op = op;
      this.heldBy = heldBy;
    }
  }

  /**
   * Creates a queue.
   *
   * @param threadName the name of the worker thread
   * @param runner runs an operation; must not throw
   * @param time by which threads wait for their turns
   */
  public CollectiveQueue(String threadName, Consumer<GroupOperation> runner, Time time) {
    this.time = time;
    this.threadName = threadName;
    this.runner = runner;
  }

  /** Returns the number of operations issued. */
  public long sequence() {
    return gate >>> NUMBER_SHIFT;
  }

  /**
   * Takes the next number and the turn if both are free now.
   *
   * @return the number, or {@link #TAKEN} or {@link #STOPPED}
   */
  public long tryEnter() {
    long seen = gate;
    if ((seen & (INLINE | SHUT)) == 0) {
      long number = (seen >>> NUMBER_SHIFT) + 1;
      if (GATE.compareAndSet(this, seen, number << NUMBER_SHIFT | INLINE)) {
        inline = Thread.currentThread();
        return number;
      }
    }
    shut();
    try {
      return tryTake();
    } finally {
      unlock();
    }
  }

  /**
   * Waits for the turn, even if interrupted, and takes it with the next number.
   *
   * @return the number, or {@link #STOPPED}, or {@link #TAKEN} if the deadline comes first
   */
  public long enter(long deadlineNanos) {
    long[] number = new long[1];
    boolean _ = await(free, () -> (number[0] = tryTake()) != TAKEN, deadlineNanos);
    return number[0];
  }

  private long tryTake() {
    if (stopped) {
      return STOPPED;
    }
    if (isTaken() || !queue.isEmpty()) {
      return TAKEN;
    }
    owner = Thread.currentThread();
    return nextNumber();
  }

  private long nextNumber() {
    issued.signalAll();
    return ((long) GATE.getAndAdd(this, 1L << NUMBER_SHIFT) >>> NUMBER_SHIFT) + 1;
  }

  /**
   * Takes back the number of the operation that has the turn, so that those behind it, which are
   * all queued, have one less.
   *
   * @param renumber receives each of them, from the first to the last; must not throw
   */
  public void takeBack(Consumer<GroupOperation> renumber) {
    shut();
    try {
      GATE.getAndAdd(this, -1L << NUMBER_SHIFT);
      queue.forEach(queued -> renumber.accept(queued.op));
    } finally {
      unlock();
    }
  }

  /** Gives the turn back after {@link #tryEnter} or {@link #enter}. */
  public void exit() {
    if (Thread.currentThread().equals(inline)) {
      inline = null;
      long seen = gate;
      if ((seen & SHUT) == 0 && GATE.compareAndSet(this, seen, seen & ~INLINE)) {
        return;
      }
      shut();
      GATE.getAndBitwiseAnd(this, ~INLINE);
    } else {
      shut();
      owner = null;
    }
    signalNext();
    unlock();
  }

  private void signalNext() {
    if (!queue.isEmpty()) {
      work.signal();
    } else if (!isTaken()) {
      free.signalAll();
    }
  }

  /** Takes the lock, and makes all other threads take it. */
  private void shut() {
    lock.lock();
    GATE.getAndBitwiseOr(this, SHUT);
  }

  private void unlock() {
    open();
    lock.unlock();
  }

  /** Lets other threads do without the lock if nothing is left to do under it. */
  private void open() {
    if (owner == null && queue.isEmpty() && waiting == 0 && !stopped) {
      GATE.getAndBitwiseAnd(this, ~SHUT);
    }
  }

  /** Waits for a signal that there is work; false if none came for a long time. */
  private boolean awaitWork() throws InterruptedException {
    open();
    try {
      return time.await(lock, work, IDLE_NANOS) > 0;
    } finally {
      GATE.getAndBitwiseOr(this, SHUT);
    }
  }

  private boolean isTaken() {
    return owner != null || (gate & INLINE) != 0;
  }

  /** Waits for a signal; false if the deadline has passed. */
  private boolean awaitUntil(Condition signal, long deadlineNanos) throws InterruptedException {
    long left = deadlineNanos - time.nanoTime();
    if (left <= 0) {
      return false;
    }
    waiting++;
    try {
      long _ = time.await(lock, signal, left);
    } finally {
      waiting--;
    }
    return true;
  }

  /**
   * Issues an operation with the next number, behind all others.
   *
   * @param issue receives the number; must not throw
   * @param hold whether the operation waits for {@link #release}
   * @return whether the operation is queued; false if the queue has stopped
   */
  public boolean enqueue(GroupOperation op, LongConsumer issue, boolean hold) {
    shut();
    try {
      if (stopped) {
        return false;
      }
      issue.accept(nextNumber());
      queue.add(new Queued(op, hold ? Thread.currentThread() : null));
      if (worker == null) {
        worker = time.start(threadName, this::work);
      } else {
        work.signal();
      }
      return true;
    } finally {
      unlock();
    }
  }

  /** Lets an operation that was queued on hold take its turn. */
  public void release(GroupOperation op) {
    shut();
    try {
      for (Queued queued : queue) {
        if (queued.op == op) {
          queued.heldBy = null;
        }
      }
      work.signal();
    } finally {
      unlock();
    }
  }

  /**
   * Returns whether the queue waits for the calling thread, which therefore must not wait for the
   * turn.
   */
  public boolean waitsForThisThread() {
    shut();
    try {
      Thread self = Thread.currentThread();
      boolean holds = self.equals(owner) || self.equals(inline);
      for (Queued queued : queue) {
        holds |= self.equals(queued.heldBy);
      }
      return holds;
    } finally {
      unlock();
    }
  }

  /**
   * Stops the queue as soon as nothing is queued and no other thread runs.
   *
   * @return whether the queue stopped before the deadline or an interrupt
   */
  public boolean stopWhenIdle(long deadlineNanos) {
    shut();
    try {
      while (!queue.isEmpty() || !isFree()) {
        if (!awaitUntil(free, deadlineNanos)) {
          return false;
        }
      }
      stopped = true;
      work.signal();
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      unlock();
    }
  }

  /** Waits until no other thread runs; false if the deadline comes first. */
  public boolean awaitFree(long deadlineNanos) {
    return await(free, this::isFree, deadlineNanos);
  }

  /**
   * Waits, even if interrupted, until a number has been issued or will not be.
   *
   * @param isRefused returns whether it will not be; asked again after {@link #refused}
   * @param deadlineNanos the deadline, in terms of the queue's time
   */
  public void awaitIssued(long number, BooleanSupplier isRefused, long deadlineNanos) {
    boolean _ =
        await(issued, () -> sequence() >= number || isRefused.getAsBoolean(), deadlineNanos);
  }

  /** Wakes threads in {@link #awaitIssued}, because a call was refused. */
  public void refused() {
    shut();
    issued.signalAll();
    unlock();
  }

  private boolean await(Condition signal, BooleanSupplier isMet, long deadlineNanos) {
    shut();
    try {
      return Uninterrupted.await(
          () -> {
            while (!isMet.getAsBoolean()) {
              if (!awaitUntil(signal, deadlineNanos)) {
                return false;
              }
            }
            return true;
          });
    } finally {
      unlock();
    }
  }

  private boolean isFree() {
    Thread self = Thread.currentThread();
    return (owner == null || self.equals(owner)) && ((gate & INLINE) == 0 || self.equals(inline));
  }

  /** Removes and returns all queued operations. */
  public List<GroupOperation> drain() {
    shut();
    try {
      List<GroupOperation> drained = new ArrayList<>(queue.size());
      queue.forEach(queued -> drained.add(queued.op));
      queue.clear();
      signalNext();
      return drained;
    } finally {
      unlock();
    }
  }

  /** Accepts no more operations, and removes and returns the queued ones. */
  public List<GroupOperation> stop() {
    shut();
    try {
      stopped = true;
      work.signal();
      free.signalAll();
      return drain();
    } finally {
      unlock();
    }
  }

  private void work() {
    GroupOperation op = next();
    while (op != null) {
      runner.accept(op);
      exit();
      op = next();
    }
  }

  /** Waits for an operation and takes the turn for it; null when the worker should end. */
  private @Nullable GroupOperation next() {
    shut();
    try {
      while (true) {
        Queued first = queue.peek();
        if (first != null && !isTaken() && first.heldBy == null) {
          queue.remove();
          owner = Thread.currentThread();
          return first.op;
        }
        boolean rested = false;
        if (!stopped) {
          try {
            rested = !awaitWork();
          } catch (InterruptedException e) {
            continue;
          }
        }
        if (queue.isEmpty() && (stopped || rested)) {
          worker = null;
          return null;
        }
      }
    } finally {
      unlock();
    }
  }
}
