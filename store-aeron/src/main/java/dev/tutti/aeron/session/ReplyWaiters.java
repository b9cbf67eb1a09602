package dev.tutti.aeron.session;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.cpu.wait.Futex;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import java.util.concurrent.TimeUnit;
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
   * With shared memory, one thread at a time sleeps in the bell and takes the replies of all. It is
   * either the thread of a call, which the server then wakes directly, or "tutti-al-poll", if the
   * calls' threads are virtual or came while another thread was in the bell that has since left. A
   * thread that leaves the bell marks it as empty, and then checks whether any call sleeps. A thread
   * that comes counts itself, and then checks whether any thread is in the bell. One of the two
   * therefore wakes "tutti-al-poll". An interrupt does not end a sleep in the bell, so the sleeps of
   * calls are short.
   *
   * Between hosts, and until both sides can wake each other, "tutti-al-poll" polls from time to time
   * while any call sleeps.
   */
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long INTERRUPT_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final int SLEEPS_BEFORE_LINKING = 64;

  private final @Nullable Bells bells;
  private final Replies replies;
  private final boolean spin;
  private final Thread poller = EmbeddedDriver.daemon("tutti-al-poll", this::look);
  private final Futex futex = new Futex();
  private final AtomicInteger count = new AtomicInteger();
  private final AtomicReference<@Nullable Thread> inBell = new AtomicReference<>();
  private int sleeps;
  private volatile boolean isWoken;

  /**
   * The two bells of a session through shared memory.
   *
   * @param own the bell that wakes this process
   * @param server the bell that wakes the server
   */
  record Bells(Doorbell own, Doorbell server) {}

  /** The session whose calls sleep. */
  interface Replies {
    /** Takes what has arrived, unless another thread is doing so; returns how much. */
    int take();

    /** Runs an action while the memory is mapped, then takes everything that has arrived. */
    void takeAllAfter(Runnable first);

    /** Runs a task while the memory is mapped. */
    void whileThere(Runnable task);

    /** Returns whether something could not be sent for lack of room. */
    boolean owes();

    /** Sends of that what there is room for now. */
    void sendOwed();

    boolean isUsable();

    /** Ends the session, because its replies cannot be read. */
    void lose(Throwable cause);
  }

  /**
   * Creates an instance without starting threads.
   *
   * @param bells the bells, or null between hosts
   * @param replies the session
   * @param spin whether to poll all the time, between hosts
   */
  ReplyWaiters(@Nullable Bells bells, Replies replies, boolean spin) {
    this.bells = bells;
    this.replies = replies;
    this.spin = spin;
  }

  /** Starts the thread that looks for replies. */
  void start() {
    poller.start();
  }

  /** Returns whether a thread sleeps in the bell itself, or is about to. */
  boolean isInBell() {
    return inBell.get() != null;
  }

  /** Makes a call sleep until its reply may have arrived, or for a time; may return spuriously. */
  void sleep(PendingCall call, long nanos) {
    count.getAndIncrement();
    try {
      Doorbell bell = bell();
      if (bell == null) {
        if (bells != null && ++sleeps == SLEEPS_BEFORE_LINKING) {
          Futex.link(); // some sleeps may not be counted, as there is no lock
        }
      } else if (!Thread.currentThread().isVirtual()
          && inBell.compareAndSet(null, Thread.currentThread())) {
        sleepInBell(bell, call, Math.min(nanos, INTERRUPT_NANOS));
        return;
      }
      if (inBell.get() == null) {
        LockSupport.unpark(poller);
      }
      if (replies.isUsable() && !call.isOver()) {
        LockSupport.parkNanos(call, nanos);
      }
    } finally {
      count.decrementAndGet();
    }
  }

  /** Returns the bell of this process if it and the server can wake each other, otherwise null. */
  private @Nullable Doorbell bell() {
    Bells both = bells;
    if (both == null) {
      return null;
    }
    if (!isWoken && Futex.isLinked()) {
      replies.whileThere(
          () -> {
            if (!both.own().canWake()) {
              both.own().disarm();
            }
            isWoken = both.server().canWake();
          });
    }
    return isWoken ? both.own() : null;
  }

  /**
   * Sleeps until the server rings the bell, for one call or for all; the calling thread is the one
   * in the bell.
   */
  private void sleepInBell(Doorbell own, @Nullable PendingCall call, long nanos) {
    try {
      replies.takeAllAfter(own::arm);
      if (replies.isUsable() && !(call == null ? replies.owes() : call.isOver())) {
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

  /** Makes the thread that looks for replies send cancellations, too. */
  void poll() {
    LockSupport.unpark(poller);
    if (poller.equals(inBell.get())) {
      wakeInBell();
    }
  }

  private void wakeInBell() {
    if (bells != null && isInBell()) {
      replies.whileThere(bells.own()::ring);
    }
  }

  /** Runs on the thread that looks for the replies of sleeping calls. */
  private void look() {
    WaitStrategy wait = WaitStrategy.polling(spin, Time.SYSTEM);
    try {
      while (replies.isUsable()) {
        replies.sendOwed();
        boolean owes = replies.owes();
        if (count.get() == 0 && !owes) {
          LockSupport.park(this);
          wait.reset();
          continue;
        }
        Doorbell bell = owes ? null : bell();
        if (bell == null) {
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
