package dev.tutti.aeron.session;

import dev.tutti.aeron.wire.BodyReader;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;

/** A request in progress; its thread waits for the reply, which any thread may deliver. */
public class PendingCall {
  private static final long LONGEST_GRACE_NANOS = TimeUnit.SECONDS.toNanos(15);

  public final long number;
  public final Thread thread = Thread.currentThread();
  private int code;
  private byte[] body = new byte[0];
  private volatile boolean done;
  private volatile boolean closed;
  private volatile long heard = System.nanoTime();

  public PendingCall(long number) {
    this.number = number;
  }

  /** Stores the reply; the caller wakes the thread. */
  public void complete(int replyCode, byte[] replyBody) {
    code = replyCode;
    body = replyBody;
    done = true;
  }

  public boolean isDone() {
    return done;
  }

  /** Notes that a part of the reply has arrived. */
  public void heard() {
    heard = System.nanoTime();
  }

  /**
   * Returns whether to give up on the reply: its deadline has passed, and no part of it has arrived
   * for a while. Replies to other calls extend the wait by only a few seconds, so that a lost reply
   * does not cause an endless wait.
   *
   * @param now the time, by {@link System#nanoTime()}
   * @param deadline when the reply was due
   * @param lastFrame when anything last arrived
   * @param graceNanos the longest permitted pause
   */
  public boolean isLate(long now, long deadline, long lastFrame, long graceNanos) {
    return now - deadline > 0
        && now - heard > graceNanos
        && (now - lastFrame > graceNanos || now - deadline > LONGEST_GRACE_NANOS);
  }

  /** Notes that the store of this call was closed. */
  public void close() {
    closed = true;
  }

  public boolean isClosed() {
    return closed;
  }

  /** Returns whether the thread should stop waiting. */
  boolean isOver() {
    return done || closed;
  }

  public int code() {
    return code;
  }

  public BodyReader body() {
    return new BodyReader().wrap(new UnsafeBuffer(body), 0, body.length);
  }
}
