package dev.tutti.fake.simulation;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** Which monitors threads hold and wait for, as the JVM knows for its thread dumps. */
final class Monitors {
  /** Takes a snapshot of a thread; null if it has not started, or has ended. */
  private static final MethodHandle SNAPSHOT;

  private static final MethodHandle AWAITED;
  private static final MethodHandle LOCKS;
  private static final MethodHandle LOCKED;

  static {
    try {
      MethodHandles.Lookup own = MethodHandles.lookup();
      MethodHandle opens =
          MethodHandles.privateLookupIn(Module.class, own)
              .findVirtual(
                  Module.class,
                  "implAddOpens",
                  MethodType.methodType(void.class, String.class, Module.class));
      opens.invoke(Object.class.getModule(), "jdk.internal.vm", Monitors.class.getModule());
      Class<?> snapshot = Class.forName("jdk.internal.vm.ThreadSnapshot");
      Class<?> lock = Class.forName("jdk.internal.vm.ThreadSnapshot$ThreadLock");
      MethodHandles.Lookup all = MethodHandles.privateLookupIn(snapshot, own);
      SNAPSHOT = all.findStatic(snapshot, "create", MethodType.methodType(snapshot, Thread.class));
      AWAITED = all.findGetter(snapshot, "blockerObject", Object.class);
      LOCKS = all.findGetter(snapshot, "locks", lock.arrayType());
      LOCKED = all.findGetter(lock, "obj", Object.class);
    } catch (Throwable e) {
      throw new IllegalStateException("this JDK cannot run simulated worlds: " + e, e);
    }
  }

  private Monitors() {}

  /**
   * Returns the object whose monitor a thread waits to enter; null if it may enter, or was notified
   * in a wait.
   */
  static @Nullable Object awaitedBy(Thread thread) {
    try {
      Object snapshot = SNAPSHOT.invoke(thread);
      return snapshot == null ? null : AWAITED.invoke(snapshot);
    } catch (Throwable e) {
      throw unreadable(thread, e);
    }
  }

  /** Returns whether a thread that does not run holds the monitor of an object, or waits in it. */
  @SuppressWarnings("ReferenceEquality") // of monitors
  static boolean holds(Thread thread, Object object) {
    try {
      Object snapshot = SNAPSHOT.invoke(thread);
      Object[] locks =
          snapshot == null || AWAITED.invoke(snapshot) == object
              ? null
              : (Object[]) LOCKS.invoke(snapshot);
      for (int i = 0; locks != null && i < locks.length; i++) {
        if (LOCKED.invoke(locks[i]) == object) {
          return true;
        }
      }
      return false;
    } catch (Throwable e) {
      throw unreadable(thread, e);
    }
  }

  private static IllegalStateException unreadable(Thread thread, Throwable cause) {
    return new IllegalStateException("cannot read the monitors of " + thread + ": " + cause, cause);
  }
}
