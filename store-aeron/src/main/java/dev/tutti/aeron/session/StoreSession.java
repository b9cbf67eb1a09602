package dev.tutti.aeron.session;

import dev.tutti.StoreSilentException;
import dev.tutti.aeron.wire.BodyWriter;
import java.util.concurrent.locks.LockSupport;

/**
 * The session of this process with the servers of a store, shared by all stores of the process for
 * that store. Any thread may call.
 */
public interface StoreSession {
  /** A writer of the body of a request. */
  interface Request {
    void put(BodyWriter body);
  }

  /** Returns the name of the servers, for messages. */
  String server();

  boolean isUsable();

  /** Joins this session once more; returns false if it has ended. */
  boolean retain();

  /** Leaves this session; it ends when the last user leaves. */
  void release();

  /** Returns a new call of this thread; the caller must forget it. */
  PendingCall newCall();

  void forget(PendingCall call);

  /** Wakes the thread of a call that was closed. */
  default void wake(PendingCall call) {
    LockSupport.unpark(call.thread);
  }

  /** Sends a request; an interrupt does not end the sending. */
  void send(int code, PendingCall call, long deadline, Request request);

  /**
   * Waits for the reply.
   *
   * @param call the call
   * @param deadline when to give up, by {@link System#nanoTime()}; a wait that an interrupt does
   *     not end continues while parts of the reply arrive, and for some seconds while anything does
   * @param endable whether an interrupt and {@link PendingCall#close} end the wait
   * @return whether the reply has arrived
   */
  boolean await(PendingCall call, long deadline, boolean endable);

  /** Returns how long an answer may take, however short the timeout of a call. */
  long graceNanos();

  /** Returns the exception to throw when there is no answer. */
  StoreSilentException unanswered();
}
