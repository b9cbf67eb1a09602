package dev.tutti.aeron.session;

import dev.tutti.StoreSilentException;
import dev.tutti.aeron.wire.BodyWriter;
import java.util.concurrent.locks.LockSupport;

/**
 * The session of this process with those who serve a store; all stores of the process for it share
 * it. Any thread may call.
 */
public interface StoreSession {
  /** Writes the body of a request. */
  interface Request {
    void put(BodyWriter body);
  }

  /** Returns who serves, for messages. */
  String server();

  boolean isUsable();

  /** Takes part in this session once more; returns whether it has not ended. */
  boolean retain();

  /** Leaves this session; the last one ends it. */
  void release();

  /** Returns a new call of this thread; it must be forgotten. */
  PendingCall newCall();

  void forget(PendingCall call);

  /** Wakes the thread of a call that was closed. */
  default void wake(PendingCall call) {
    LockSupport.unpark(call.thread);
  }

  /** Sends a request; an interrupt does not end it. */
  void send(int code, PendingCall call, long deadline, Request request);

  /**
   * Waits for the reply.
   *
   * @param call the call
   * @param deadline when to give up, by {@link System#nanoTime()}; what an interrupt does not end
   *     continues while parts of the reply come, and for some seconds while anything does
   * @param endable whether an interrupt ends this, and {@link PendingCall#close}
   * @return whether it has come
   */
  boolean await(PendingCall call, long deadline, boolean endable);

  /** Returns how long an answer may take, however short the time-out of a call. */
  long graceNanos();

  /** Returns what to throw when there is no answer. */
  StoreSilentException unanswered();
}
