package dev.tutti.aeron.session;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.cpu.wait.Futex;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The calls of a session that sleep until their replies arrive, and the search for replies in the
 * meantime.
 */
final class ReplyWaiters {
  /*
   * With shared memory, the thread "tutti-al" sleeps in a read of the control connection, on which
   * the server rings if the bell is armed. A call that goes to sleep arms the bell, unless
   * "tutti-al" is awake; when "tutti-al" is about to sleep and any call sleeps, it arms the bell
   * itself.
   *
   * If both sides may call native code, one thread at a time sleeps in the bell and takes the
   * replies of all. It is either the thread of a call, which the server then wakes directly, or
   * "tutti-al-poll", if the calls' threads are virtual or came while another thread was in the bell
   * that has since left. A thread that leaves the bell marks it as empty, and then checks whether
   * any call sleeps. A thread that comes counts itself, and then checks whether any thread is in
   * the bell. One of the two therefore wakes "tutti-al-poll". An interrupt does not end a sleep in
   * the bell, so the sleeps of calls are short.
   *
   * Between hosts, "tutti-al-poll" polls from time to time while any call sleeps.
   */
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long INTERRUPT_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  /** How long a thread takes only brief sleeps before it sleeps until woken, which costs more. */
  private static final long BRIEF_NANOS = TimeUnit.MICROSECONDS.toNanos(500);

  private static final int SLEEPS_BEFORE_LINKING = 64;

  private final @Nullable Doorbell bell;
  private final Replies replies;
  private final boolean spin;
  private final Thread poller = EmbeddedDriver.daemon("tutti-al-poll", this::look);
  private final Futex futex = new Futex();
  private final AtomicBoolean saidWakes = new AtomicBoolean();
  private final AtomicInteger count = new AtomicInteger();
  private final AtomicReference<@Nullable Thread> inBell = new AtomicReference<>();
  private int sleeps;
  private volatile boolean serverWakes;
  private volatile boolean listenerAwake;

  /** The session whose calls sleep. */
  interface Replies {
    /** Takes what has arrived, unless another thread is doing so; returns how much. */
    int take();

    /** Runs an action while the memory is mapped, then takes everything that has arrived. */
    void takeAllAfter(Runnable first);

    /** Runs a task while the memory is mapped. */
    void whileThere(Runnable task);

    boolean isUsable();

    /** Tells the server that this process can wake a thread that sleeps in a bell. */
    void sayWakes();

    /** Ends the session, because its replies cannot be read. */
    void lose(Throwable cause);
  }

  /**
   * Creates an instance without starting threads.
   *
   * @param bell the bell of this process, or null between hosts
   * @param replies the session
   * @param spin whether to poll all the time, between hosts
   */
  ReplyWaiters(@Nullable Doorbell bell, Replies replies, boolean spin) {
    this.bell = bell;
    this.replies = replies;
    this.spin = spin;
  }

  /** Starts the thread that looks for replies, if one is needed from the start. */
  void start() {
    if (bell == null) {
      poller.start();
    }
  }

  /** Tells whether a message wakes some thread. */
  boolean isArmed() {
    return bell != null && bell.isArmed();
  }

  /** Tells whether a thread sleeps in the bell itself, or is about to. */
  boolean isInBell() {
    return inBell.get() != null;
  }

  /** Makes a call sleep until its reply may have arrived, or for a time; may return spuriously. */
  void sleep(PendingCall call, long nanos) {
    boolean first = count.getAndIncrement() == 0;
    try {
      Doorbell own = bell;
      if (own == null) {
        if (first) {
          LockSupport.unpark(poller);
        }
      } else if (!canSleepInBell()) {
        if (!listenerAwake) {
          replies.takeAllAfter(own::arm);
        }
      } else if (!Thread.currentThread().isVirtual()
          && inBell.compareAndSet(null, Thread.currentThread())) {
        sleepInBell(own, call, Math.min(nanos, INTERRUPT_NANOS));
        return;
      } else if (inBell.get() == null) {
        LockSupport.unpark(poller);
      }
      if (replies.isUsable() && !call.isOver()) {
        LockSupport.parkNanos(call, nanos);
      }
    } finally {
      count.decrementAndGet();
    }
  }

  private boolean canSleepInBell() {
    if (!serverWakes) {
      if (++sleeps == SLEEPS_BEFORE_LINKING) { // may lose counts, as there is no lock
        Futex.link();
      }
      if (Futex.isLinked() && !saidWakes.getAndSet(true)) {
        replies.sayWakes();
      }
    }
    return serverWakes;
  }

  /**
   * Sleeps until the server rings, for one call or for all; the calling thread is the one in the
   * bell.
   */
  private void sleepInBell(Doorbell own, @Nullable PendingCall call, long nanos) {
    try {
      replies.takeAllAfter(own::armForSleep);
      if (replies.isUsable() && (call == null || !call.isOver())) {
        own.sleep(futex, nanos);
      }
      while (replies.take() > 0) {
        Thread.onSpinWait();
      }
    } finally {
      inBell.set(null);
      if (call != null && count.get() > 1) {
        LockSupport.unpark(poller);
      }
    }
  }

  /** Wakes the thread of a call. */
  void wake(PendingCall call) {
    LockSupport.unpark(call.thread);
    if (call.thread.equals(inBell.get())) {
      wakeInBell();
    }
  }

  /** Wakes all threads that look for replies. */
  void wakeAll() {
    wakeInBell();
    LockSupport.unpark(poller);
  }

  private void wakeInBell() {
    if (bell != null && serverWakes) {
      replies.whileThere(bell::wakeSleeper);
    }
  }

  /**
   * Notes that the server can wake a thread that sleeps in a bell; called by the thread that reads
   * the control connection.
   */
  void serverWakes() {
    poller.start();
    serverWakes = true;
  }

  /**
   * Handles the server's ring: takes replies while any call sleeps and replies arrive; called by
   * the thread that reads the control connection.
   */
  void rung() {
    if (isInBell()) {
      wakeInBell();
      return;
    }
    listenerAwake = true;
    WaitStrategy wait = WaitStrategy.polling(false, Time.SYSTEM);
    boolean more = true;
    while (more) {
      if (replies.take() > 0) {
        wait.reset();
      }
      more =
          replies.isUsable()
              && count.get() > 0
              && (wait.staysAwake() || wait.pausesWithin(BRIEF_NANOS));
    }
    listenerAwake = false;
    if (bell != null && count.get() > 0 && !isInBell()) {
      replies.takeAllAfter(bell::arm);
    }
  }

  /** Runs on the thread that looks for the replies of sleeping calls. */
  private void look() {
    WaitStrategy wait = WaitStrategy.polling(spin, Time.SYSTEM);
    try {
      while (replies.isUsable()) {
        if (count.get() == 0) {
          LockSupport.park(this);
          wait.reset();
        } else if (bell == null) {
          if (replies.take() > 0) {
            wait.reset();
          } else {
            wait.rest();
          }
        } else if (inBell.compareAndSet(null, poller)) {
          sleepInBell(bell, null, LONGEST_NANOS);
        } else {
          LockSupport.park(this);
        }
      }
    } catch (Throwable e) {
      replies.lose(e);
    }
  }
}
