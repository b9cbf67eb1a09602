package dev.tutti.aeron.session;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.spi.Wills;
import dev.tutti.store.table.Arguments;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A store that turns its calls into requests of a session. */
public abstract class RemoteStore implements Store, Wills {
  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final long LONGEST_WITHDRAWAL_NANOS = TimeUnit.SECONDS.toNanos(15);
  private static final long CLOSE_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private final StoreSession link;
  private final Duration timeout;
  private final Time time;
  private final List<Long> wills = new CopyOnWriteArrayList<>();
  private final Set<PendingCall> blocked = ConcurrentHashMap.newKeySet();
  private final Set<PendingCall> asking = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /** Creates a store that joins a session, and leaves it when closed. */
  protected RemoteStore(StoreSession link, Duration timeout, Time time) {
    this.link = link;
    this.timeout = timeout;
    this.time = time;
  }

  @Override
  public final Duration timeout() {
    return timeout;
  }

  @Override
  public final void set(String key, byte[] value) {
    put(Protocol.SET, key, value);
  }

  @Override
  public final byte[] get(String key, Duration timeout) {
    return multiGet(List.of(Arguments.key(key)), timeout).get(0);
  }

  @Override
  public final long add(String key, long delta) {
    Arguments.key(key);
    return ask(
            Protocol.ADD,
            body -> {
              body.putText(key);
              body.putLong(delta);
            })
        .readLong();
  }

  @Override
  public final Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Arguments.key(key);
    Arguments.value(key, desired);
    if (expected != null) {
      Arguments.value(key, expected);
    }
    BodyReader reply =
        ask(
            Protocol.SWAP,
            body -> {
              body.putText(key);
              body.putOptional(expected);
              body.putBytes(desired);
            });
    return reply.readByte() != 0
        ? new Swap(true, desired.clone())
        : new Swap(false, reply.readOptional());
  }

  @Override
  public final void await(List<String> keys, Duration timeout) {
    awaitKeys(Protocol.WAIT, keys, timeout);
  }

  @Override
  public final boolean check(List<String> keys) {
    List<String> all = Arguments.keys(keys);
    return ask(Protocol.CHECK, body -> body.putTexts(all)).readLong() != 0;
  }

  @Override
  public final boolean deleteKey(String key) {
    return number(Protocol.DELETE, Arguments.key(key)) != 0;
  }

  @Override
  public final long keyCount() {
    return ask(Protocol.COUNT, body -> {}).readLong();
  }

  @Override
  public final void append(String key, byte[] value) {
    put(Protocol.APPEND, key, value);
  }

  @Override
  public final List<byte[]> multiGet(List<String> keys, Duration timeout) {
    return awaitKeys(Protocol.FETCH, keys, timeout).readAllBytes();
  }

  @Override
  public final void multiSet(List<String> keys, List<byte[]> values) {
    List<String> all = Arguments.keys(keys);
    Arguments.values(all, values);
    ask(
        Protocol.MULTI_SET,
        body -> {
          body.putTexts(all);
          body.putInt(values.size());
          values.forEach(body::putBytes);
        });
  }

  @Override
  public final void queuePush(String key, byte[] value) {
    put(Protocol.PUSH, key, value);
  }

  @Override
  public final byte[] queuePop(String key, Duration timeout) {
    Arguments.key(key);
    PendingCall call = await(Protocol.POP, timeout, body -> body.putText(key));
    if (call.code() != Protocol.MISSING) {
      return call.body().readBytes();
    }
    if (Arguments.nanos(timeout) <= 0) {
      throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
    }
    throw Arguments.popTimeout(key, timeout);
  }

  @Override
  public final long queueLength(String key) {
    return number(Protocol.LENGTH, Arguments.key(key));
  }

  @Override
  public final List<String> listKeys() {
    List<String> keys = ask(Protocol.LIST, body -> {}).readAllTexts();
    Collections.sort(keys);
    return List.copyOf(keys);
  }

  @Override
  public final void barrier(String key, int size, Duration timeout) {
    Arguments.key(key);
    Arguments.barrierSize(key, size);
    PendingCall call =
        await(
            Protocol.BARRIER,
            timeout,
            body -> {
              body.putInt(size);
              body.putText(key);
            });
    if (call.code() == Protocol.MISSING) {
      int arrived = (int) call.body().readLong();
      throw Arguments.barrierTimeout(key, arrived, size, timeout);
    }
  }

  @Override
  public final boolean leaveWill(String log, byte[] value) {
    Arguments.key(log);
    Arguments.key(log + Integer.MAX_VALUE); // a number follows
    Arguments.value(log, value);
    requireOpen();
    PendingCall call = link.newCall();
    wills.add(call.number); // a will has the number of its call, even if the answer is late
    ask(
        call,
        Protocol.WILL,
        Arguments.nanos(timeout),
        body -> {
          body.putText(log);
          body.putBytes(value);
        });
    return true;
  }

  /** Returns the number of waiting calls of this handle. */
  final int waiting() {
    return blocked.size();
  }

  private void withdrawWills() {
    long deadline =
        Arguments.deadline(time, Math.min(Arguments.nanos(timeout), LONGEST_WITHDRAWAL_NANOS));
    for (Long will : wills) {
      if (time.nanoTime() - deadline > link.graceNanos()) {
        LOG.log(Level.DEBUG, "the server does not answer; it may carry out wills");
        return;
      }
      try {
        withdraw(will, deadline);
      } catch (StoreTimeoutException e) {
        LOG.log(Level.DEBUG, "the server may carry out a will", e);
      } catch (StoreException e) {
        LOG.log(Level.DEBUG, "the server is gone and has lost all wills", e);
        return;
      }
    }
  }

  private void withdraw(long will, long deadline) {
    PendingCall call = link.newCall();
    try {
      link.send(Protocol.WITHDRAW, call, deadline, body -> body.putLong(will));
      // Each wait has a grace period, so calls after the deadline are not waited for.
      if (time.nanoTime() - deadline < 0 && !link.await(call, deadline, false)) {
        throw link.unanswered();
      }
    } finally {
      link.forget(call);
    }
  }

  /** Joins the session once more, for a duplicate. */
  protected final void retainLink() {
    requireOpen();
    if (!link.retain()) {
      throw closedException();
    }
  }

  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      if (!wills.isEmpty()) {
        withdrawWills();
      }
      closed = true;
    }
    for (PendingCall call : blocked) {
      call.close();
      link.wake(call);
    }
    // These calls still request their outcome from the server, and others are about to be answered.
    long deadline = time.nanoTime() + CLOSE_NANOS;
    boolean _ =
        WaitStrategy.until(
            () -> blocked.isEmpty() && asking.isEmpty(), deadline, CLOSE_PAUSE_NANOS, time);
    link.release();
  }

  private long number(int code, String key) {
    return ask(code, body -> body.putText(key)).readLong();
  }

  private void put(int code, String key, byte[] value) {
    Arguments.key(key);
    Arguments.value(key, value);
    ask(
        code,
        body -> {
          body.putText(key);
          body.putBytes(value);
        });
  }

  private BodyReader awaitKeys(int code, List<String> keys, Duration timeout) {
    List<String> all = Arguments.keys(keys);
    PendingCall call = await(code, timeout, body -> body.putTexts(all));
    BodyReader reply = call.body();
    if (call.code() == Protocol.MISSING) {
      throw Arguments.waitTimeout(reply.readKeys(), all.size(), timeout);
    }
    return reply;
  }

  /** Runs a call that the server answers immediately. */
  private BodyReader ask(int code, StoreSession.Request request) {
    requireOpen();
    return ask(link.newCall(), code, Arguments.nanos(timeout), request);
  }

  private BodyReader ask(PendingCall call, int code, long nanos, StoreSession.Request request) {
    asking.add(call);
    try {
      requireOpen(); // close() looks for calls after it has set the flag
      long deadline = graceful(nanos);
      link.send(code, call, deadline, request);
      if (!link.await(call, deadline, false)) {
        throw link.unanswered();
      }
      return checked(call).body();
    } finally {
      asking.remove(call);
      link.forget(call);
    }
  }

  /** Runs a call that may have to wait for others. */
  private PendingCall await(int code, Duration timeout, StoreSession.Request request) {
    requireOpen();
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(time, nanos);
    boolean now = nanos <= 0;
    PendingCall call = link.newCall();
    blocked.add(call);
    try {
      requireOpen();
      link.send(
          code,
          call,
          graceful(nanos),
          body -> {
            body.putByte(now ? 1 : 0);
            request.put(body);
          });
      if (!link.await(call, now ? graceful(0) : deadline, !now)) {
        giveUp(call, now);
      }
      return checked(call);
    } finally {
      blocked.remove(call);
      link.forget(call);
    }
  }

  /**
   * Requests the state of a call from the server that makes no progress; whatever has arrived is
   * the outcome.
   */
  private void giveUp(PendingCall call, boolean now) {
    boolean interrupted = Thread.currentThread().isInterrupted();
    if (!now) {
      long deadline = graceful(0);
      link.send(Protocol.CANCEL, call, deadline, body -> {});
      if (link.await(call, deadline, false) && call.code() != Protocol.MISSING) {
        return;
      }
    }
    if (closed) {
      throw closedException();
    }
    if (interrupted) {
      throw new StoreException("interrupted while waiting", new InterruptedException());
    }
    if (!call.isDone()) {
      throw link.unanswered();
    }
  }

  private long graceful(long nanos) {
    return Arguments.deadline(time, Math.max(nanos, link.graceNanos()));
  }

  private static PendingCall checked(PendingCall call) {
    if (call.code() == Protocol.FAILED) {
      throw new StoreException(call.body().readText());
    }
    return call;
  }

  private void requireOpen() {
    if (closed) {
      throw closedException();
    }
  }

  private StoreClosedException closedException() {
    return new StoreClosedException("the store at " + link.server() + " is closed");
  }
}
