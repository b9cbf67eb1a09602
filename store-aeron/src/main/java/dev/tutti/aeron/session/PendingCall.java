package dev.tutti.aeron.session;

import dev.tutti.aeron.wire.BodyReader;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;

/** One request on its way; its thread waits for the reply, any thread may bring it. */
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

  /** Keeps the reply; the caller wakes the thread. */
  public void complete(int replyCode, byte[] replyBody) {
    code = replyCode;
    body = replyBody;
    done = true;
  }

  public boolean isDone() {
    return done;
  }

  /** Says that a part of the reply came. */
  public void heard() {
    heard = System.nanoTime();
  }

  /**
   * Tells whether to give up the reply: its deadline is over, and no part of it came for a while.
   * What comes for other calls counts for some seconds only, so that a lost reply is no endless
   * wait.
   *
   * @param now the time, by {@link System#nanoTime()}
   * @param deadline when it should have come
   * @param lastFrame when anything came
   * @param graceNanos how long a pause may be
   */
  public boolean isLate(long now, long deadline, long lastFrame, long graceNanos) {
    return now - deadline > 0
        && now - heard > graceNanos
        && (now - lastFrame > graceNanos || now - deadline > LONGEST_GRACE_NANOS);
  }

  /** Says that the store of this call was closed. */
  public void close() {
    closed = true;
  }

  public boolean isClosed() {
    return closed;
  }

  /** Tells whether the thread is to wait no more. */
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
