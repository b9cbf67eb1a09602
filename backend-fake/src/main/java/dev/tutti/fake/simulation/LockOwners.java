package dev.tutti.fake.simulation;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.AbstractQueuedSynchronizer.ConditionObject;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Which {@link ReentrantLock} a thread waits for, and which thread owns it. */
final class LockOwners {
  private static final Class<?> LOCK;
  private static final MethodHandle OWNER;
  private static final MethodHandle LOCK_OF_CONDITION;

  static {
    try {
      Monitors.open("java.util.concurrent.locks");
      LOCK = Class.forName(ReentrantLock.class.getName() + "$Sync");
      OWNER =
          MethodHandles.privateLookupIn(AbstractOwnableSynchronizer.class, MethodHandles.lookup())
              .findVirtual(
                  AbstractOwnableSynchronizer.class,
                  "getExclusiveOwnerThread",
                  MethodType.methodType(Thread.class));
      LOCK_OF_CONDITION =
          MethodHandles.privateLookupIn(ConditionObject.class, MethodHandles.lookup())
              .findGetter(ConditionObject.class, "this$0", AbstractQueuedSynchronizer.class);
    } catch (Throwable e) {
      throw new IllegalStateException("this JDK cannot run simulated worlds: " + e, e);
    }
  }

  private LockOwners() {}

  /**
   * Returns the lock that a thread waits for, also if it was released but has not continued yet;
   * null if it waits for none.
   */
  static @Nullable Object awaitedBy(Thread thread) {
    Object blocker = LockSupport.getBlocker(thread);
    return LOCK.isInstance(blocker) ? blocker : null;
  }

  /** Returns whether a thread that was released takes a lock next, also after a wait in it. */
  @SuppressWarnings("ReferenceEquality") // of locks
  static boolean takes(Thread released, Object lock) {
    try {
      Object blocker = LockSupport.getBlocker(released);
      return blocker == lock
          || (blocker instanceof ConditionObject && LOCK_OF_CONDITION.invoke(blocker) == lock);
    } catch (Throwable e) {
      throw new IllegalStateException("cannot read what " + released + " waited for: " + e, e);
    }
  }

  /** Returns the thread that owns a lock; null if nobody does. */
  static @Nullable Thread of(Object lock) {
    try {
      return (Thread) OWNER.invoke(lock);
    } catch (Throwable e) {
      throw new IllegalStateException("cannot read the owner of " + lock + ": " + e, e);
    }
  }
}
