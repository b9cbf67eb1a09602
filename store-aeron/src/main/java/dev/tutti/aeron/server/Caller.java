package dev.tutti.aeron.server;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Protocol;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A client, from the point of view of its requests; used by the thread that owns the table. */
public abstract class Caller {
  private static final int LONGEST_REASON = 4096;

  public final Map<Long, Will> wills = new LinkedHashMap<>();
  private final Map<Long, Wait> waits = new HashMap<>();

  /**
   * The will that a client leaves, to be published if it is lost.
   *
   * @param log the beginning of the key, which a number follows
   * @param value the bytes
   */
  @SuppressWarnings("ArrayRecordComponent")
  public record Will(String log, byte[] value) {}

  /** A handler that carries out requests. */
  interface Requests {
    void run(Caller caller, int code, long call, BodyReader body);
  }

  /**
   * A call that waits.
   *
   * @param cancel removes the wait from the table
   * @param missing answers that what the call waited for is missing; runs after that
   */
  record Wait(Runnable cancel, Runnable missing) {
    void answerMissing() {
      cancel.run();
      missing.run();
    }
  }

  /** Answers a call. */
  public abstract void reply(int code, long call, BodyWriter body);

  /** Returns whether anyone receives the answers. */
  public boolean isHeard() {
    return true;
  }

  /** Answers a call that failed because of the data or of this process. */
  public void fail(long call, Throwable failure, BodyWriter body) {
    refuse(call, failure, body);
  }

  /** Answers that a call that changes nothing has failed. */
  public final void refuse(long call, Throwable failure, BodyWriter body) {
    String reason =
        failure instanceof StoreException
            ? String.valueOf(failure.getMessage())
            : failure.toString();
    body.clear().putText(reason.substring(0, Math.min(reason.length(), LONGEST_REASON)));
    reply(Protocol.FAILED, call, body);
  }

  void waiting(long call, Wait wait) {
    if (waits.putIfAbsent(call, wait) != null) {
      wait.cancel().run();
      throw new MalformedMessageException("two calls with number " + call);
    }
  }

  public boolean isWaiting(long call) {
    return waits.containsKey(call);
  }

  void answered(long call) {
    waits.remove(call);
    release(call);
  }

  /**
   * Accounts for the memory that a waiting call or a will takes.
   *
   * @throws StoreException if the call takes more than this caller may hold
   */
  void hold(long call, long bytes) {}

  /** Releases that memory from the account. */
  void release(long call) {}

  /** Answers a wait that its caller has given up, unless it has already been answered. */
  public void cancel(long call) {
    Wait wait = waits.remove(call);
    if (wait != null) {
      release(call);
      wait.answerMissing();
    }
  }

  /** Removes a wait from the table without answering it. */
  public void drop(long call) {
    Wait wait = waits.remove(call);
    if (wait != null) {
      release(call);
      wait.cancel().run();
    }
  }

  /** Removes all waits from the table. */
  public void dropAll() {
    List<Wait> left = List.copyOf(waits.values());
    waits.clear();
    left.forEach(wait -> wait.cancel().run());
  }
}
