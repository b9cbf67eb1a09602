package dev.tutti.aeron;

import org.agrona.concurrent.UnsafeBuffer;

/** Is one request on its way; its thread waits for the reply, any thread may bring it. */
class Call {
  final long number;
  final Thread thread = Thread.currentThread();
  private int code;
  private byte[] body = new byte[0];
  private volatile boolean done;
  private volatile boolean closed;

  Call(long number) {
    this.number = number;
  }

  /** Keeps the reply; the caller wakes the thread. */
  void complete(int replyCode, byte[] replyBody) {
    code = replyCode;
    body = replyBody;
    done = true;
  }

  boolean isDone() {
    return done;
  }

  /** Says that the store of this call was closed. */
  void close() {
    closed = true;
  }

  boolean isClosed() {
    return closed;
  }

  int code() {
    return code;
  }

  BodyReader body() {
    return new BodyReader().wrap(new UnsafeBuffer(body), 0, body.length);
  }
}
