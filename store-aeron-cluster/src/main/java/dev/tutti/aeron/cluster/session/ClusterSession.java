package dev.tutti.aeron.cluster.session;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.aeron.cluster.member.CallNumbers;
import dev.tutti.aeron.cluster.member.ClusterEgress;
import dev.tutti.aeron.cluster.member.ClusterLogs;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.session.PendingCall;
import dev.tutti.aeron.session.StoreSession;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.Locks;
import io.aeron.Aeron;
import io.aeron.DirectBufferVector;
import io.aeron.Publication;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.cluster.codecs.EventCode;
import io.aeron.logbuffer.Header;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** The session of this process with a store cluster. */
public final class ClusterSession implements StoreSession, EgressListener {
  /*
   * One lock guards Aeron's client, which is not thread-safe. Callers write their requests; the
   * thread "tutti-al-poll" takes the replies and shows the cluster that this process is alive. All
   * requests without a reply are kept: a new leader gets them again, and the members keep which of
   * them they have seen (ClusterCaller). Requests that could not be sent because there was no
   * leader are sent then as well.
   *
   * Aeron does not notify a client whose session ended while there was no leader, as all sessions
   * do when all members restart. If this process receives nothing for a while, it therefore sends a
   * question, and checks whether the cluster answers others. It gives up if that is so, or if it
   * receives nothing for a long time, not counting the time in which the process itself was stopped.
   * After a pause so long that Aeron's client has ended itself, it gives up at once. On a slow path,
   * one large request can fill the window for longer than that, so a question that is due goes
   * before the next part of a request, and the silence before it proves nothing.
   */
  private static final Logger LOG = System.getLogger(ClusterLogs.CLIENT);
  private static final long LEAST_GRACE_NANOS = TimeUnit.SECONDS.toNanos(15);
  private static final long SIGN_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long LONGEST_LOOK_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long QUIET_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long FULL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String server;
  private final EmbeddedDriver driver;
  private final Aeron aeron;
  private final Timing timing;
  private final long graceNanos;
  private final ClusterProbe probe;
  private final boolean spin;
  private final FrameReader reader;
  private final FrameWriter questions;
  private final ClusterRequests requests;
  private final BodyWriter body = new BodyWriter();
  private final DirectBufferVector[] vectors = {
    new DirectBufferVector(), new DirectBufferVector(), new DirectBufferVector()
  };
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<Long, Sent> calls = new ConcurrentHashMap<>();
  private final CallNumbers numbers = new CallNumbers();
  private final AtomicInteger users = new AtomicInteger(1);
  private final Thread poller;
  private @Nullable AeronCluster cluster;
  private int leaders;
  private boolean behind;
  private long lastSign = System.nanoTime();
  private long lastLook = System.nanoTime();
  private long silentNanos;
  private boolean owesQuestion;

  /** How long it had been silent when the first question since was sent; -1 if none was. */
  private long askedNanos = -1;

  private volatile long lastFrame = System.nanoTime();
  private volatile @Nullable String loss;
  private volatile boolean closed;

  ClusterSession(
      String server,
      EmbeddedDriver driver,
      Aeron aeron,
      Timing timing,
      long session,
      ClusterProbe probe,
      boolean spin) {
    this.server = server;
    this.driver = driver;
    this.aeron = aeron;
    this.timing = timing;
    // A new leader takes back the calls that gave up while there was none.
    this.graceNanos = Math.max(LEAST_GRACE_NANOS, timing.electedNanos() + timing.askNanos());
    this.probe = probe;
    this.spin = spin;
    this.reader = new FrameReader(session, new Replies());
    this.questions = new FrameWriter(this::offer, ClusterEgress.FRAME_BYTES, session);
    this.requests =
        new ClusterRequests(
            new FrameWriter(this::offerAfterSign, ClusterEgress.FRAME_BYTES, session), Time.SYSTEM);
    this.poller = EmbeddedDriver.daemon("tutti-al-poll", this::look);
  }

  /**
   * Starts serving calls; called once.
   *
   * @param connected the session
   * @throws io.aeron.exceptions.AeronException if this process was paused for too long in the
   *     meantime
   */
  void start(AeronCluster connected) {
    cluster = connected;
    EmbeddedDriver.whenEnded(aeron, () -> closed, () -> lose(EmbeddedDriver.ENDED_ITSELF));
    poller.start();
  }

  /** A call together with its request. */
  private static final class Sent extends PendingCall {
    int code;
    UnsafeBuffer request = new UnsafeBuffer(new byte[0]);
    boolean isAsked;
    boolean isSent;
    boolean isCancelled;
    boolean isCancelSent;
    long giveUp = System.nanoTime();

    Sent(long number) {
      super(number);
    }
  }

  private AeronCluster cluster() {
    return Objects.requireNonNull(cluster);
  }

  public int leader() {
    lock.lock();
    try {
      return cluster().leaderMemberId();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public String server() {
    return server;
  }

  @Override
  public boolean isUsable() {
    return !closed && loss == null;
  }

  @Override
  public boolean retain() {
    return users.getAndUpdate(count -> count == 0 ? 0 : count + 1) > 0;
  }

  @Override
  public void release() {
    if (users.decrementAndGet() == 0) {
      close();
    }
  }

  @Override
  public PendingCall newCall() {
    Sent call = new Sent(numbers.next());
    calls.put(call.number, call);
    return call;
  }

  @Override
  public void forget(PendingCall call) {
    calls.remove(call.number);
    numbers.free(call.number);
  }

  @Override
  public void send(int code, PendingCall call, long deadline, Request request) {
    if (!Locks.acquire(Time.SYSTEM, lock, deadline)) {
      throw unanswered();
    }
    try {
      requireUsable();
      Sent own = Objects.requireNonNull(calls.get(call.number));
      own.giveUp = deadline + graceNanos;
      if (code == Protocol.CANCEL) {
        own.isCancelled = true;
      } else {
        request.put(body.clear());
        byte[] copy = new byte[body.length()];
        body.buffer().getBytes(0, copy);
        own.request = new UnsafeBuffer(copy);
        own.code = code;
        own.isAsked = true;
      }
      behind |= !write(own);
    } finally {
      lock.unlock();
    }
    LockSupport.unpark(poller);
  }

  /** Writes the unsent part of a call; returns whether everything has been sent. */
  private boolean write(Sent call) {
    if (call.isAsked && !call.isSent) {
      call.isSent = write(call, call.code, call.request);
      if (!call.isSent) {
        return false;
      }
    }
    if (call.isCancelled && !call.isCancelSent) {
      call.isCancelSent = write(call, Protocol.CANCEL, new UnsafeBuffer(new byte[0]));
      return call.isCancelSent;
    }
    return true;
  }

  private boolean write(Sent call, int code, UnsafeBuffer request) {
    int before = leaders;
    return isReachable()
        && requests.write(
            code,
            call.number,
            request,
            call.giveUp,
            () -> {
              poll();
              return leaders == before && isReachable();
            });
  }

  private boolean isReachable() {
    return isUsable() && cluster().ingressPublication().isConnected();
  }

  private long offerAfterSign(UnsafeBuffer head, DirectBuffer part, int at, int bytes) {
    return sign(System.nanoTime()) ? offer(head, part, at, bytes) : Publication.BACK_PRESSURED;
  }

  private long offer(UnsafeBuffer head, DirectBuffer part, int at, int bytes) {
    vectors[1].reset(head, 0, Protocol.HEADER_BYTES);
    vectors[2].reset(bytes == 0 ? head : part, bytes == 0 ? 0 : at, bytes); // none may be empty
    long result = cluster().offer(vectors);
    return result == Publication.CLOSED ? Publication.NOT_CONNECTED : result;
  }

  @Override
  public boolean await(PendingCall call, long deadline, boolean endable) {
    boolean interrupted = false;
    try {
      while (!call.isDone()) {
        requireUsable();
        long now = System.nanoTime();
        boolean late =
            endable ? now - deadline > 0 : call.isLate(now, deadline, lastFrame, graceNanos);
        if (late || (endable && call.isClosed())) {
          return false;
        }
        if (spin) {
          Thread.onSpinWait();
        } else {
          LockSupport.parkNanos(call, Math.max(deadline - now, FULL_PAUSE_NANOS));
        }
        interrupted |= Thread.interrupted();
        if (interrupted && endable) {
          return call.isDone();
        }
      }
      return true;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Runs on the thread that takes the replies. */
  private void look() {
    WaitStrategy wait = WaitStrategy.polling(spin, Time.SYSTEM);
    while (isUsable()) {
      int found = 0;
      lock.lock();
      try {
        if (isUsable()) {
          found = poll();
          resend();
        }
      } catch (Throwable e) {
        lose(e.toString());
      } finally {
        lock.unlock();
      }
      if (calls.isEmpty()) {
        LockSupport.parkNanos(this, QUIET_PAUSE_NANOS);
        wait.reset();
      } else if (found > 0) {
        wait.reset();
      } else {
        wait.rest();
      }
    }
  }

  /** Takes what has arrived and shows that this process is alive. */
  private int poll() {
    assert lock.isHeldByCurrentThread();
    int found = cluster().pollEgress();
    if (cluster().isClosed()) {
      lose(
          ("there was no leader for %d s, or it closed the session of this process because the"
                  + " process was silent for %d s")
              .formatted(
                  TimeUnit.NANOSECONDS.toSeconds(timing.livenessNanos()),
                  TimeUnit.NANOSECONDS.toSeconds(timing.silenceNanos())));
      return found;
    }
    long now = System.nanoTime();
    boolean _ = sign(now);
    silentNanos += Math.min(now - lastLook, LONGEST_LOOK_NANOS);
    lastLook = now;
    if (silentNanos > timing.leaseNanos()) {
      doubt(now);
    }
    return found;
  }

  private void doubt(long now) {
    boolean isUnanswered =
        askedNanos >= 0
            && silentNanos - askedNanos > timing.leaseNanos() - timing.askNanos() - SIGN_NANOS;
    if (isUnanswered && probe.isAnswered(now)) {
      lose(
          "it does not know the session of this process, as after a restart of members; its keys"
              + " are kept, but not what this process waited for");
    } else if (silentNanos > timing.lostNanos()) {
      lose(
          "no member answered for %d s"
              .formatted(TimeUnit.NANOSECONDS.toSeconds(timing.lostNanos())));
    }
  }

  /**
   * Shows, if that is due, that this process is alive, and in a silence requests an answer; returns
   * false if there is no room for that.
   */
  private boolean sign(long now) {
    if (now - lastSign > SIGN_NANOS) {
      if (!cluster().sendKeepAlive()) {
        return false;
      }
      lastSign = now;
      owesQuestion = silentNanos > timing.askNanos();
    }
    if (owesQuestion) {
      if (questions.write(Protocol.CANCEL, CallNumbers.PROBE, new UnsafeBuffer(new byte[0]), 0, 0)
          >= 0) {
        return false;
      }
      owesQuestion = false;
      askedNanos = askedNanos < 0 ? silentNanos : askedNanos;
    }
    return true;
  }

  private void heard() {
    if (silentNanos > timing.leaseNanos()) {
      probe.close();
    }
    silentNanos = 0;
    owesQuestion = false;
    askedNanos = -1;
  }

  private void resend() {
    if (behind && isUsable()) {
      int before = leaders;
      boolean done = true;
      for (Sent call : calls.values()) {
        done &= call.isDone() || write(call);
      }
      behind = !done || leaders != before;
    }
  }

  @Override
  public void onMessage(
      long clusterSession,
      long timestamp,
      DirectBuffer buffer,
      int offset,
      int length,
      Header header) {
    heard();
    if (length >= Protocol.HEADER_BYTES
        && buffer.getLong(offset + Protocol.CALL_OFFSET, LITTLE_ENDIAN) != CallNumbers.PROBE) {
      lastFrame = System.nanoTime();
    }
    reader.onFragment(buffer, offset, length, header);
  }

  @Override
  public void onNewLeader(long clusterSession, long term, int leader, String ingress) {
    LOG.log(Level.DEBUG, "{0}: member {1} leads", server, leader);
    leaders++;
    heard();
    behind = true;
    lastSign = System.nanoTime() - 2 * SIGN_NANOS;
    for (Sent call : calls.values()) {
      call.isSent = false;
      call.isCancelSent = false;
    }
  }

  @Override
  public void onSessionEvent(
      long correlation, long clusterSession, long term, int leader, EventCode code, String detail) {
    LOG.log(Level.DEBUG, "{0}: {1} {2}", server, code, detail);
  }

  /** The receiver of answers, which delivers them to the calls that wait. */
  private final class Replies implements FrameReader.Messages {
    @Override
    public void take(int code, long number, BodyReader reply) {
      Sent call = calls.get(number);
      if (call != null && !call.isDone()) {
        call.complete(code, reply.rest());
        LockSupport.unpark(call.thread);
      }
    }

    @Override
    public void takePart(long number) {
      Sent call = calls.get(number);
      if (call != null) {
        call.heard();
      }
    }
  }

  private void lose(String why) {
    if (loss == null && !closed) {
      // If Aeron's client has ended itself, everything else follows from that.
      String reason =
          aeron.isClosed()
              ? "session with %s is lost: %s".formatted(server, EmbeddedDriver.ENDED_ITSELF)
              : "%s is gone: %s".formatted(server, why);
      loss = reason;
      LOG.log(Level.DEBUG, reason);
    }
    calls.values().forEach(call -> LockSupport.unpark(call.thread));
  }

  private void requireUsable() {
    if (closed) {
      throw new StoreClosedException("the store at " + server + " was closed during a call");
    }
    String why = loss;
    if (why != null) {
      throw new StoreConnectionException(why, null);
    }
  }

  @Override
  public long graceNanos() {
    return graceNanos;
  }

  @Override
  public StoreSilentException unanswered() {
    return new StoreSilentException(server + " did not answer in time");
  }

  private void close() {
    closed = true;
    calls.values().forEach(call -> LockSupport.unpark(call.thread));
    LockSupport.unpark(poller);
    if (!Locks.acquire(Time.SYSTEM, lock, Arguments.deadline(Time.SYSTEM, CLOSE_NANOS))) {
      LOG.log(Level.WARNING, "a call to {0} does not return; its memory is not released", server);
      return;
    }
    try {
      probe.close();
      cluster().close();
      aeron.close();
      driver.close();
    } finally {
      lock.unlock();
    }
  }
}
