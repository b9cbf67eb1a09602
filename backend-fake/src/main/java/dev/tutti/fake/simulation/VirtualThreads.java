package dev.tutti.fake.simulation;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Constructor;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads that run on a given executor, which the JDK offers only to its own tests. */
final class VirtualThreads {
  /*
   * A virtual thread that waits for a monitor is made runnable by a thread of the JVM, the
   * "unblocker", some time after the monitor was released. A scheduler that must not depend on that
   * time waits here until the unblocker has handled all that was released before: it works off one
   * list of threads after the other, so when two threads that settle() blocks and releases one
   * after the other have come back, each list that was there at the beginning has been handled.
   */
  private static final Constructor<?> BUILDER = constructor();
  private static final VarHandle STATE = state();
  private static final MethodHandle AFTER_DONE = afterDone();

  /** The states of a thread that enters a monitor, which the JDK numbers in a row. */
  private static final int FIRST_ENTERING = constant("BLOCKING");

  private static final int LAST_ENTERING = constant("UNBLOCKED");
  private static final int SUSPENDED = constant("SUSPENDED");

  private final Object monitor = new Object();
  private final Queue<Runnable> returned = new ConcurrentLinkedQueue<>();

  /** Whether the JVM was asked for monitors before, which then loads no class. */
  private boolean linked;

  /**
   * Links all that a run calls on its carrier, before a thread of the run may hold what that needs.
   */
  VirtualThreads() {
    passThrough();
  }

  /** Returns a builder of threads that run on an executor. */
  static Thread.Builder.OfVirtual on(Executor scheduler) {
    try {
      return (Thread.Builder.OfVirtual) BUILDER.newInstance(scheduler);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot create a virtual thread: " + e, e);
    }
  }

  private static Constructor<?> constructor() {
    try {
      Constructor<?> found =
          Class.forName("java.lang.ThreadBuilders$VirtualThreadBuilder")
              .getDeclaredConstructor(Executor.class);
      found.setAccessible(true);
      return found;
    } catch (ReflectiveOperationException e) {
      throw unusable(e);
    }
  }

  private static VarHandle state() {
    try {
      return lookup().findVarHandle(lookup().lookupClass(), "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw unusable(e);
    }
  }

  private static MethodHandle afterDone() {
    try {
      return lookup()
          .findVirtual(
              lookup().lookupClass(),
              "afterDone",
              MethodType.methodType(void.class, boolean.class));
    } catch (ReflectiveOperationException e) {
      throw unusable(e);
    }
  }

  private static int constant(String name) {
    try {
      return (int) lookup().findStaticVarHandle(lookup().lookupClass(), name, int.class).get();
    } catch (ReflectiveOperationException e) {
      throw unusable(e);
    }
  }

  private static MethodHandles.Lookup lookup() throws ReflectiveOperationException {
    return MethodHandles.privateLookupIn(
        Class.forName("java.lang.VirtualThread"), MethodHandles.lookup());
  }

  private static IllegalStateException unusable(ReflectiveOperationException cause) {
    return new IllegalStateException("this JDK cannot run simulated worlds: " + cause, cause);
  }

  /**
   * Returns whether a virtual thread waits to enter a monitor, or may enter it but has not yet. So
   * does one that was notified, but not one that still waits to be.
   */
  static boolean isEntering(Thread thread) {
    int state = stateOf(thread);
    return state >= FIRST_ENTERING && state <= LAST_ENTERING;
  }

  /**
   * Ends a thread that waits and never runs again: the JVM keeps all threads that have started and
   * not ended, with all that they refer to.
   */
  static void abandon(Thread thread) {
    try {
      AFTER_DONE.invoke(thread, true);
    } catch (Throwable e) {
      throw new IllegalStateException("cannot end " + thread + ": " + e, e);
    }
  }

  private static int stateOf(Thread thread) {
    return (int) STATE.getVolatile(thread) & ~SUSPENDED;
  }

  /** Waits until the JVM has made all threads runnable whose monitors were released before. */
  void settle() {
    passThrough();
    passThrough();
  }

  private void passThrough() {
    Deque<Runnable> own = new ArrayDeque<>();
    Thread carrier = Thread.currentThread();
    // The carrier cannot hold the monitor: the JVM would take the thread that it carries for it.
    Thread holder = on(own::add).start(this::holdMonitor);
    own.remove().run();
    Executor catching =
        continuation -> {
          if (Thread.currentThread().equals(carrier)) {
            own.add(continuation);
          } else {
            returned.add(continuation);
            LockSupport.unpark(carrier);
          }
        };
    Thread taker = on(catching).start(this::takeMonitor);
    own.removeLast().run();
    if (!linked) {
      linked = monitor.equals(Monitors.awaitedBy(taker)) && Monitors.holds(holder, monitor);
      if (!linked) {
        throw new IllegalStateException("this JVM does not say which thread holds a monitor");
      }
    }
    own.remove().run();
    Runnable continuation = returned.poll();
    while (continuation == null) {
      LockSupport.park(this);
      continuation = returned.poll();
    }
    continuation.run();
  }

  @SuppressWarnings("ThreadPriorityCheck") // this gives control back to the carrier
  private void holdMonitor() {
    synchronized (monitor) {
      Thread.yield();
    }
  }

  private void takeMonitor() {
    synchronized (monitor) {
      // Blocks only to be released.
    }
  }
}
