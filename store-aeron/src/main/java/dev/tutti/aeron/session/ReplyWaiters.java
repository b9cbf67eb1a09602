package dev.tutti.aeron.session;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.cpu.wait.Futex;
import dev.tutti.cpu.wait.WaitStrategy;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Lets calls of a session sleep until their replies come, and looks for these meanwhile. */
final class ReplyWaiters {
  /*
   * With shared memory the thread "tutti-al" sleeps in a read of the control connection, and the server
   * rings there where the bell is armed. A thread that goes to sleep arms it, calls as well as "tutti-al", unless
   * "tutti-al" is awake; when that is about to sleep and any call sleeps, it arms the bell itself.
   *
   * Where both sides may call native code, one thread at a time sleeps in the bell and takes the replies of
   * all: that of a call, which so is woken by the server itself; or "tutti-al-poll", if the calls' threads
   * are virtual or came while another one was there, which has left. A thread that leaves says that nobody is there,
   * then looks whether any call sleeps. A thread that comes counts itself, then looks whether anybody is there. So one
   * of the two wakes "tutti-al-poll". An interrupt ends no sleep in the bell, so those of calls are short.
   *
   * Between hosts "tutti-al-poll" looks from time to time while any call sleeps.
   */
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long INTERRUPT_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  /** How long a thread sleeps briefly before it sleeps until it is woken, which costs more. */
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
    /** Takes what has come, unless another thread does; returns how much. */
    int take();

    /** Runs something while the memory is there, then takes all that has come. */
    void takeAllAfter(Runnable first);

    /** Runs something while the memory is there. */
    void whileThere(Runnable task);

    boolean isUsable();

    /** Tells the server that this process can wake who sleeps in a bell. */
    void sayWakes();

    /** Ends the session, as its replies cannot be read. */
    void lose(Throwable cause);
  }

  /**
   * Creates it without threads.
   *
   * @param bell of this process, or null between hosts
   * @param replies the session
   * @param spin whether to look all the time, between hosts
   */
  ReplyWaiters(@Nullable Doorbell bell, Replies replies, boolean spin) {
    this.bell = bell;
    this.replies = replies;
    this.spin = spin;
  }

  /** Starts the thread that looks, where one is needed from the start. */
  void start() {
    if (bell == null) {
      poller.start();
    }
  }

  /** Tells whether a message wakes somebody. */
  boolean isArmed() {
    return bell != null && bell.isArmed();
  }

  /** Tells whether a thread sleeps in the bell itself, or is about to. */
  boolean isInBell() {
    return inBell.get() != null;
  }

  /** Has a call sleep until its reply may be there, or for a time; may return without reason. */
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
      if (++sleeps == SLEEPS_BEFORE_LINKING) { // some are not counted, as nobody locks
        Futex.link();
      }
      if (Futex.isLinked() && !saidWakes.getAndSet(true)) {
        replies.sayWakes();
      }
    }
    return serverWakes;
  }

  /** Sleeps until the server rings, for a call or for all; this thread is the one in the bell. */
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

  /** Wakes whoever looks for replies. */
  void wakeAll() {
    wakeInBell();
    LockSupport.unpark(poller);
  }

  private void wakeInBell() {
    if (bell != null && serverWakes) {
      replies.whileThere(bell::wakeSleeper);
    }
  }

  /** Says that the server can wake who sleeps in a bell; called by the thread that hears it. */
  void serverWakes() {
    poller.start();
    serverWakes = true;
  }

  /**
   * Does what is to be done when the server rings, while any call sleeps and something comes;
   * called by the thread that hears it.
   */
  void rung() {
    if (isInBell()) {
      wakeInBell();
      return;
    }
    listenerAwake = true;
    WaitStrategy wait = WaitStrategy.polling(false);
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
    WaitStrategy wait = WaitStrategy.polling(spin);
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
