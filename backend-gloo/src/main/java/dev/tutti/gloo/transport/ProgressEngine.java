package dev.tutti.gloo.transport;

import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.gloo.transport.ring.Sleep;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Selector;
import java.nio.channels.spi.SelectorProvider;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Determines which thread moves the bytes of all connections of a transport, and lets it do so. */
@SuppressWarnings("ReferenceEquality") // a thread is itself and no other
final class ProgressEngine {
  /*
   * A single lock guards all state of the transport. One thread at a time drives: it reads, writes
   * and waits in the selector, releasing the lock during the wait. A thread that waits for an
   * operation drives by itself, so that no other thread has to be woken for a message: for a short
   * time it polls the sockets from which it expects something, then it blocks in the selector. All
   * other callers follow: they park until their goals are reached, and check again every
   * millisecond. A driver that leaves wakes the follower that has waited longest. A follower that
   * leaves while no thread drives wakes the next one.
   *
   * Bytes are first staged and later written by a flush, and no thread waits before that flush. A
   * driver flushes whenever it polls. A follower flushes before it parks, since the driver may be
   * in the selector and unaware of bytes staged since. A thread that starts a message flushes at
   * once, and a collective flushes at its end. If a driver leaves in between, the bytes it staged
   * for others are written by the follower that it wakes, or by the daemon. Bytes that a channel
   * does not accept are left to the driver. A polling driver tries again. A driver in the selector
   * is notified of space: interest in writes is set before each wait in the selector, and a thread that
   * leaves bytes while another one waits there sets it and wakes the selector.
   *
   * A daemon thread drives while no caller does. It stays away for a while after a caller has left,
   * because the next operation is likely to follow at once: for KEEP_AWAY, or for BACKGROUND_TICK
   * if sends, receives or unsent bytes are left behind, or recently were. More of these are then
   * likely, and waking the thread for each would cost more than letting it check. Nor does it queue
   * for the lock, because a thread that holds the lock for long is a caller that drives. A caller
   * may take over from the daemon at any time: it makes itself the driver and wakes the selector.
   * When the daemon returns from its wait, it sees this and stays away. Until then (ioSelecting)
   * the caller must not touch the selector, because it could swallow the wake-up; it polls sockets
   * or waits for selectorFree.
   *
   * A caller in the selector is woken only by bytes, and a follower by nothing. An event that may
   * reach a goal, namely a request ended or an operation completed by another thread, therefore
   * wakes the caller in the selector, and each follower whose goal is reached (wakeCallers).
   *
   * A caller that always finds something to do nevertheless checks the clock, and lets others have
   * the lock: a peer may never stop sending.
   *
   * Polling a few sockets does not find what else may happen: a message from any rank, a knock, a
   * connection made. A thread whose messages always arrive quickly never waits in the selector, and
   * keeps the daemon away. Once a millisecond (LOOK_TICK) the driver therefore looks at the
   * selector without waiting.
   *
   * If the ranks share memory, polling reads all rings, and only the sockets of ranks that do not
   * share it. It first spins briefly, under the lock unless another thread queues for it. Then it
   * yields for a while, even if ranks outnumber cores, unless BusyCores finds that yielding takes
   * long. A message therefore costs a system call only if no thread has waited for it recently.
   * Before each wait in the selector this rank announces that it is asleep, and checks its rings
   * once more (see RingChannel). From then on peers wake it with a doorbell, until it returns or
   * another thread takes over.
   */
  private static final long KEEP_AWAY = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long BACKGROUND_TICK = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LOOK_TICK = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long IDLE = TimeUnit.SECONDS.toNanos(1);
  private static final int POLLED_PAIRS = 4;
  private static final int BUSY_POLLS = 64;
  private static final long HOLD_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final int YIELDS = 64;
  private static final int LOCK_TRIES = 100;
  private static final long YIELD_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  final ReentrantLock lock = new ReentrantLock();

  final BusyPairs pairs;
  private final Work work;
  private final TransportLog log;
  private final Time time;
  private final Selector selector;
  private final Thread ioThread;
  private final Condition selectorFree = lock.newCondition();
  private final ReadyKeys ready = new ReadyKeys();
  private final BusyCores cores = new BusyCores();
  private final Followers followers = new Followers();
  private @Nullable Thread driver;
  private boolean ioSelecting;
  private boolean callerSelecting;
  private boolean closed;
  private long lastDrive;
  private long lastLook;
  private boolean mustLook;
  private long spinNanos;
  private WaitStrategy wait;
  private boolean ioKeepsAway;
  private boolean leftWork;
  private long lastLeftWork;

  /** What there is to do beside the traffic of the pairs. All methods require the lock. */
  interface Work {
    /** Returns whether requests of users are in progress. */
    boolean hasUserRequests();

    /**
     * Notifies users of ended requests, and the group of a failure; releases the lock meanwhile.
     */
    boolean deliver();

    /** Returns whether connections begin, other than those made at the start, or end. */
    boolean areInTransition();

    /** Returns whether this rank has to try something again after a while, without an event. */
    boolean hasRetries();

    /** Tries again what is due; returns whether there was anything to do. */
    boolean retry();

    /** Releases what an idle transport does not need. */
    void idle();

    /** Ends everything in progress because the selector failed. */
    void failed(Exception cause);

    /** Ends everything because of the error that ended the thread that would otherwise do so. */
    void ended(Throwable cause);
  }

  ProgressEngine(
      Work work, Time time, SelectorProvider channels, TransportLog log, int size, String name)
      throws IOException {
    this.work = work;
    this.time = time;
    this.log = log;
    this.wait = waitStrategy(0, 0);
    this.selector = channels.openSelector();
    this.pairs = new BusyPairs(size);
    this.ioThread = time.unstarted(name, this::runIo);
  }

  /** Returns what opens the channels of the selector. */
  SelectorProvider channels() {
    return selector.provider();
  }

  Selector selector() {
    return selector;
  }

  /**
   * Starts the daemon thread, which services the connections while no caller does.
   *
   * @param spin how long a waiting thread polls before it blocks, in nanoseconds
   */
  void start(long spin) {
    spinNanos = spin;
    wait = waitStrategy(spin, 0);
    lastDrive = time.nanoTime();
    lastLeftWork = lastDrive;
    lastLook = lastDrive;
    ioThread.start();
  }

  /**
   * Polls rings from now on.
   *
   * @param sharing all pairs that share memory
   * @param alone whether there are no other pairs
   * @param ownSleep notifies peers that this rank is asleep
   */
  void share(PairTraffic[] sharing, boolean alone, Sleep ownSleep) {
    assert lock.isHeldByCurrentThread();
    pairs.share(sharing, alone, ownSleep);
    wait = waitStrategy(spinNanos, YIELD_NANOS);
    wakeAll();
  }

  /** Returns how the driver waits; it sleeps in the selector. */
  private WaitStrategy waitStrategy(long spin, long yield) {
    return new WaitStrategy(spin, yield, 0, 0, 0, cores, time);
  }

  /** Returns whether sockets have accepted all bytes. */
  boolean isFlushed() {
    assert lock.isHeldByCurrentThread();
    return !pairs.haveUnsent();
  }

  /**
   * Flushes, and ensures that remaining bytes and started messages make progress without a caller.
   */
  void flushAndLeave() {
    assert lock.isHeldByCurrentThread();
    flush();
    if (hasBackgroundWork()) {
      leftWork = true;
      if (ioKeepsAway) {
        ioKeepsAway = false;
        LockSupport.unpark(ioThread);
      }
    }
  }

  /** Writes as much as channels accept, and has a thread in the selector write the rest. */
  private void flush() {
    pairs.flush();
    if (pairs.haveUnsent() && (ioSelecting || callerSelecting)) {
      pairs.wantWrites();
      selector.wakeup();
    }
  }

  private boolean hasBackgroundWork() {
    return pairs.haveUnsent() || work.hasUserRequests();
  }

  /**
   * Moves bytes until a goal is reached; the lock must not be held.
   *
   * @param goal the goal, checked under the lock
   * @param deadline the deadline in terms of the group's clock
   * @param flushes whether to write before returning; if not, the caller is about to write more
   * @return false if the deadline passed first
   */
  boolean drive(Goal goal, long deadline, boolean flushes) {
    Thread self = Thread.currentThread();
    boolean interrupted = false;
    lock.lock();
    try {
      boolean flushed = false;
      int busy = 0;
      while (!goal.reached()) {
        if (closed) {
          return false;
        }
        if (driver != null && driver != self && driver != ioThread) {
          if (!flushed) {
            flushed = true;
            flush();
            work.deliver();
            continue;
          }
          if (time.nanoTime() - deadline >= 0) {
            return false;
          }
          follow(goal, self);
          interrupted |= Thread.interrupted();
          continue;
        }
        takeOver(self);
        boolean progress = poll();
        progress |= work.deliver();
        if (progress && ++busy < BUSY_POLLS) {
          wait.reset();
          continue;
        }
        long now = time.nanoTime();
        if (now - deadline >= 0) {
          return false;
        }
        planLook(now);
        if (progress) {
          wait.reset();
          busy = 0;
          letOthersIn();
          continue;
        }
        switch (wait.stage(now)) {
          case SPIN -> pause(wait.elapsed());
          case YIELD -> {
            yieldCore();
            wait.yielded();
          }
          case SLEEP -> {
            block(deadline - now);
            work.deliver();
            interrupted |= Thread.interrupted();
          }
        }
      }
      return true;
    } finally {
      leave(self, flushes);
      lock.unlock();
      if (interrupted) {
        // Waits are not interruptible; the flag is kept for the caller's own code.
        self.interrupt();
      }
    }
  }

  private void takeOver(Thread self) {
    if (driver == self) {
      return;
    }
    driver = self;
    wait.reset();
    if (ioSelecting) {
      selector.wakeup();
      pairs.wakeUp();
    }
  }

  private void leave(Thread self, boolean flushes) {
    if (driver == self) {
      driver = null;
      lastDrive = time.nanoTime();
      planLook(lastDrive);
    }
    if (driver == null) {
      followers.wakeFirst();
    }
    if (flushes) {
      flushAndLeave();
      work.deliver();
    }
  }

  private void follow(Goal goal, Thread self) {
    followers.add(self, goal);
    lock.unlock();
    try {
      time.park(this, BACKGROUND_TICK);
    } finally {
      lock.lock();
      followers.remove(self);
    }
  }

  private void pause(long waited) {
    if (!pairs.shareMemory() || waited > HOLD_NANOS || lock.hasQueuedThreads()) {
      yieldCore();
    } else {
      Thread.onSpinWait();
    }
  }

  private void letOthersIn() {
    if (lock.hasQueuedThreads()) {
      yieldCore();
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // lets another rank on this core run; a hint is enough
  private void yieldCore() {
    lock.unlock();
    try {
      int turns = 0;
      do {
        Thread.yield();
      } while (lock.hasQueuedThreads() && ++turns < YIELDS);
    } finally {
      lock.lock();
    }
  }

  /** Has the next poll look at the selector if that is overdue. */
  private void planLook(long now) {
    if (now - lastLook >= LOOK_TICK) {
      lastLook = now;
      mustLook = true;
    }
  }

  private boolean poll() {
    boolean progress = pairs.flush();
    progress |= pairs.readRings();
    progress |= pairs.readBuffered();
    boolean polled = pairs.allShareMemory();
    boolean few = pairs.activeCount() <= POLLED_PAIRS && !work.areInTransition();
    if (ioSelecting || (!mustLook && (polled || few))) {
      return (!polled && pairs.readActive()) || progress;
    }
    mustLook = false;
    progress |= work.retry();
    try {
      selector.selectNow(ready);
    } catch (IOException e) {
      work.failed(e);
    }
    return ready.dispatch() || progress;
  }

  @SuppressWarnings("WaitNotInLoop") // the loop is in drive()
  private void block(long nanos) {
    if (ioSelecting) {
      try {
        long left = time.await(lock, selectorFree, Math.min(nanos, BACKGROUND_TICK));
        if (left <= 0) {
          selector.wakeup();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return;
    }
    pairs.wantWrites();
    callerSelecting = true;
    select(work.hasRetries() ? Math.min(nanos, IDLE) : nanos);
    callerSelecting = false;
    ready.dispatch();
  }

  /** Waits without holding the lock. */
  private void select(long nanos) {
    Exception failure = null;
    if (closed || !pairs.fallAsleep()) {
      return;
    }
    lock.unlock();
    try {
      int _ = time.select(selector, ready, nanos);
    } catch (IOException | ClosedSelectorException e) {
      failure = e;
    } finally {
      lock.lock();
    }
    if (closed) {
      return;
    }
    pairs.wakeUp();
    if (failure != null) {
      work.failed(failure);
    }
  }

  private void runIo() {
    lock.lock();
    try {
      boolean idle = false;
      while (!closed) {
        long absence = ioAbsence();
        if (absence > 0) {
          ioKeepsAway = absence > BACKGROUND_TICK;
          lock.unlock();
          try {
            time.park(this, absence);
          } finally {
            lockWithoutQueueing();
          }
          ioKeepsAway = false;
          idle = false;
          continue;
        }
        driver = ioThread;
        pairs.flush();
        work.retry();
        work.deliver();
        if (driver != ioThread) {
          continue;
        }
        pairs.wantWrites();
        ioSelecting = true;
        boolean waitsForEvents = idle || hasBackgroundWork();
        select(waitsForEvents && !work.hasRetries() ? Long.MAX_VALUE : IDLE);
        ioSelecting = false;
        selectorFree.signalAll();
        if (driver != ioThread) {
          ready.clear();
          continue;
        }
        boolean any = ready.dispatch();
        any |= pairs.readRings();
        any |= pairs.readBuffered();
        idle = !any && !hasBackgroundWork();
        if (idle) {
          work.idle();
        }
        pairs.flush();
        work.deliver();
        if (driver == ioThread) {
          driver = null;
        }
      }
    } catch (RuntimeException | Error e) {
      ioSelecting = false;
      selectorFree.signalAll();
      driver = driver == ioThread ? null : driver;
      work.ended(e);
    } finally {
      lock.unlock();
    }
  }

  private void lockWithoutQueueing() {
    int tries = 0;
    while (!lock.tryLock()) {
      if (++tries < LOCK_TRIES) {
        Thread.onSpinWait();
      } else {
        time.park(this, BACKGROUND_TICK);
      }
    }
  }

  private long ioAbsence() {
    long now = time.nanoTime();
    if (leftWork || hasBackgroundWork()) {
      leftWork = false;
      lastLeftWork = now;
    }
    long absence = now - lastLeftWork < KEEP_AWAY ? BACKGROUND_TICK : KEEP_AWAY;
    return driver != null && driver != ioThread ? absence : absence - (now - lastDrive);
  }

  /** Makes waiting callers check goals that another thread may just have reached. */
  void wakeCallers() {
    assert lock.isHeldByCurrentThread();
    if (callerSelecting) {
      selector.wakeup();
    }
    followers.wakeReached();
  }

  /**
   * Makes a thread that waits in the selector notice something that causes no event: a new channel,
   * or a message to be copied directly from its location.
   */
  void wakeSelector() {
    assert lock.isHeldByCurrentThread();
    if (ioSelecting || callerSelecting) {
      selector.wakeup();
    }
  }

  /** Makes all waiting threads check again. */
  void wakeAll() {
    assert lock.isHeldByCurrentThread();
    if (ioSelecting || callerSelecting) {
      selector.wakeup();
    }
    followers.wakeAll();
    LockSupport.unpark(ioThread);
  }

  /** Ends the daemon thread and closes the selector. */
  void close() {
    assert lock.isHeldByCurrentThread();
    closed = true;
    wakeAll();
    selector.wakeup();
    // Waits only for a thread that was just woken.
    log.closeQuietly(selector, "the selector did not close cleanly");
  }
}
