package dev.tutti.aeron.session;

import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Locks;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The sender of a session's requests. Any thread may call. */
final class RequestSender {
  /*
   * The lock is free while there is no room for a request. The short requests of other calls can
   * thus be sent between two frames of a long one; only one long request is sent at a time.
   */
  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final long FULL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  /** How long a request may make no progress after its deadline. */
  static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final FrameWriter writer;
  private final @Nullable Doorbell server;
  private final Owner session;
  private final ReentrantLock lock = new ReentrantLock();
  private final ReentrantLock longLock = new ReentrantLock();
  private final Queue<Long> cancels = new ConcurrentLinkedQueue<>();
  private BodyWriter body = new BodyWriter();

  /** The session whose requests are sent. */
  interface Owner {
    boolean isUsable();

    /** Throws if the session has ended. */
    void requireUsable();

    /** Notes that there is something to send later. */
    void owes();

    /** Returns the exception to throw when there is no answer. */
    StoreTimeoutException unanswered();
  }

  /**
   * Creates a sender.
   *
   * @param server the bell that wakes the server, or null between hosts
   */
  RequestSender(FrameWriter writer, @Nullable Doorbell server, Owner session) {
    this.writer = writer;
    this.server = server;
    this.session = session;
  }

  /**
   * Sends a request; an interrupt does not end the sending.
   *
   * @throws FrameWriter.ClosedStreamException if the stream has ended
   */
  void send(int code, PendingCall call, long deadline, StoreSession.Request request) {
    BodyWriter left = sendAtOnce(code, call, deadline, request);
    if (left != null) {
      sendInParts(code, call, deadline, left);
    }
  }

  /**
   * Sends a request of one frame if there is room; otherwise returns the body of the unsent
   * request.
   */
  private @Nullable BodyWriter sendAtOnce(
      int code, PendingCall call, long deadline, StoreSession.Request request) {
    if (!Locks.acquire(Time.SYSTEM, lock, deadline)) {
      throw unsent(code, call);
    }
    try {
      session.requireUsable();
      request.put(body.clear());
      if (writer.isOneFrame(body.length()) && write(code, call.number, body, 0) < 0) {
        return null;
      }
      BodyWriter left = body;
      body = new BodyWriter();
      return left;
    } finally {
      lock.unlock();
    }
  }

  private void sendInParts(int code, PendingCall call, long deadline, BodyWriter message) {
    boolean isLong = !writer.isOneFrame(message.length());
    if (isLong && !Locks.acquire(Time.SYSTEM, longLock, deadline)) {
      throw unsent(code, call);
    }
    try {
      int at = 0;
      long giveUp = deadline;
      while (true) {
        int before = at;
        lock.lock();
        try {
          session.requireUsable();
          at = write(code, call.number, message, at);
          if (at < 0) {
            body = message; // the next one needs as much memory
            return;
          }
        } finally {
          lock.unlock();
        }
        long now = Time.SYSTEM.nanoTime();
        giveUp = at > before && now + GRACE_NANOS - giveUp > 0 ? now + GRACE_NANOS : giveUp;
        if (now - giveUp > 0) {
          throw unsent(code, call);
        }
        Time.SYSTEM.park(this, FULL_PAUSE_NANOS);
      }
    } finally {
      if (isLong) {
        longLock.unlock();
      }
    }
  }

  /** Writes as much as there is room for. */
  private int write(int code, long number, BodyWriter message, int from) {
    assert lock.isHeldByCurrentThread();
    int at = writer.write(code, number, message.buffer(), message.length(), from);
    if (server != null) {
      server.ring();
    }
    return at;
  }

  private StoreTimeoutException unsent(int code, PendingCall call) {
    if (code == Protocol.CANCEL) {
      cancels.add(call.number);
      session.owes();
    }
    return session.unanswered();
  }

  /** Returns whether calls that gave up are still to be canceled. */
  boolean owes() {
    return !cancels.isEmpty();
  }

  /** Cancels calls that gave up while there was no room for that. */
  void sendOwed() {
    if (cancels.isEmpty()) {
      return;
    }
    lock.lock();
    try {
      Long number = cancels.peek();
      while (number != null
          && session.isUsable()
          && write(Protocol.CANCEL, number, body.clear(), 0) < 0) {
        cancels.remove();
        number = cancels.peek();
      }
    } catch (FrameWriter.ClosedStreamException e) {
      LOG.log(Level.DEBUG, "the next call will report this", e);
    } finally {
      lock.unlock();
    }
  }

  /** Takes the lock, without which nothing is sent; returns whether it was free by a deadline. */
  boolean stop(long deadline) {
    return Locks.acquire(Time.SYSTEM, lock, deadline);
  }

  /** Releases the lock. */
  void release() {
    lock.unlock();
  }
}
