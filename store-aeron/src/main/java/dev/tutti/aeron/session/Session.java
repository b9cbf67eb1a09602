package dev.tutti.aeron.session;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.driver.DriverDirectory;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.Locks;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The session of this process with one server. */
public final class Session implements StoreSession {
  /*
   * Each call sends its request (RequestSender) and then looks for its reply itself: the thread that
   * gets the lock of the replies takes all that have arrived, including those of other calls, and
   * wakes their threads. A call that has waited for a moment goes to sleep, and leaves the looking
   * to others (ReplyWaiters). A quick reply therefore costs no thread switch, and a process without
   * calls costs nothing.
   *
   * A call that gave up while there was no room is canceled by the thread "tutti-al-poll" once there
   * is some.
   *
   * The control connection also reveals that the server is gone: every call then fails, as it does
   * if Aeron's client has ended itself after a long pause; the server is notified of that in turn.
   * Closing takes both locks before the shared memory is unmapped, since no thread may access it
   * afterwards.
   */
  private static final Logger LOG = System.getLogger(LogNames.CLIENT);
  private static final long FULL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int FRAMES_AT_ONCE = 32;
  private static final String ENDED = "its process ended, or it dropped this client";

  private final String server;
  private final Control control;
  private final Aeron aeron;
  private final @Nullable EmbeddedDriver ownDriver;
  private final String sharedDriver;
  private final String sharedFolder;
  private final Subscription replies;
  private final FrameReader reader;
  private final RequestSender sender;
  private final boolean spin;
  private final ReentrantLock replyLock = new ReentrantLock();
  private final ConcurrentHashMap<Long, PendingCall> calls = new ConcurrentHashMap<>();
  private final AtomicLong nextCall = new AtomicLong();
  private final ReplyWaiters sleepers;
  private final AtomicInteger users = new AtomicInteger(1);
  private final Thread listener;
  private final BusyCores cores = BusyCores.ofStore();
  private volatile long lastFrame = System.nanoTime();
  private volatile @Nullable String loss;

  /** Whether the driver's client has ended, for a reason that the control connection may give. */
  private volatile boolean isClientOver;

  private volatile boolean closed;

  Session(
      String server,
      Control control,
      Aeron aeron,
      @Nullable EmbeddedDriver ownDriver,
      ReplyWaiters.@Nullable Bells bells,
      Handshake.Session session,
      Subscription replies,
      ExclusivePublication requests,
      boolean spin) {
    this.server = server;
    this.control = control;
    this.aeron = aeron;
    this.ownDriver = ownDriver;
    this.sharedDriver = ownDriver == null ? session.driver() : "";
    this.sharedFolder = ownDriver == null ? session.folder() : "";
    this.replies = replies;
    this.reader = new FrameReader(session.session(), new Messages());
    this.sender =
        new RequestSender(
            new FrameWriter(requests, session.session()),
            bells == null ? null : bells.server(),
            new Requests());
    this.spin = spin;
    this.listener = EmbeddedDriver.daemon("tutti-al", this::listen);
    this.sleepers = new ReplyWaiters(bells, new Replies(), spin);
  }

  /**
   * Starts the threads; called once, before any call.
   *
   * @throws io.aeron.exceptions.AeronException if this process was paused for too long in the
   *     meantime
   */
  void start() {
    EmbeddedDriver.whenEnded(aeron, () -> closed, this::endedItself);
    listener.start();
    sleepers.start();
  }

  @Override
  public String server() {
    return server;
  }

  /** Returns the folder of the driver that this process uses. */
  public String driver() {
    return ownDriver == null ? sharedDriver : ownDriver.path();
  }

  /** Returns whether messages travel through shared memory. */
  public boolean isShared() {
    return ownDriver == null;
  }

  /** Returns whether a thread sleeps in the bell itself. */
  public boolean isInBell() {
    return sleepers.isInBell();
  }

  @Override
  public boolean isUsable() {
    return !closed && loss == null && !isClientOver;
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
    PendingCall call = new PendingCall(nextCall.incrementAndGet());
    calls.put(call.number, call);
    return call;
  }

  @Override
  public void forget(PendingCall call) {
    calls.remove(call.number);
  }

  @Override
  public void send(int code, PendingCall call, long deadline, Request request) {
    try {
      sender.send(code, call, deadline, request);
    } catch (FrameWriter.ClosedStreamException e) {
      awaitLoss();
      if (!isClientOver) {
        lose("the stream to it ended: " + e.getMessage());
      }
      requireUsable(e);
      throw e;
    }
  }

  /** Waits a moment for the control connection to reveal why the server is gone. */
  private void awaitLoss() {
    long deadline = Arguments.deadline(Time.SYSTEM, RequestSender.GRACE_NANOS);
    boolean _ =
        WaitStrategy.until(() -> closed || loss != null, deadline, FULL_PAUSE_NANOS, Time.SYSTEM);
  }

  @Override
  public boolean await(PendingCall call, long deadline, boolean endable) {
    WaitStrategy wait = WaitStrategy.yielding(WaitStrategy.AWAKE_NANOS, cores, Time.SYSTEM);
    boolean interrupted = false;
    try {
      while (!call.isDone()) {
        requireUsable();
        takeReplies();
        if (call.isDone()) {
          return true;
        }
        long now = System.nanoTime();
        if (endable
            ? now - deadline > 0 || call.isClosed()
            : call.isLate(now, deadline, lastFrame, RequestSender.GRACE_NANOS)) {
          return false;
        }
        if (spin) {
          Thread.onSpinWait();
          interrupted |= endable && Thread.interrupted();
        } else if (!wait.staysAwake()) {
          sleepers.sleep(call, Math.max(deadline - now, FULL_PAUSE_NANOS));
          interrupted |= Thread.interrupted();
        }
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

  /** Runs on the thread that reads the control connection. */
  private void listen() {
    String why;
    try {
      int said = control.await();
      why = said == Handshake.GOODBYE ? "it was closed" : ENDED;
      takeLast();
    } catch (IOException e) {
      why = ENDED + ": " + e.getMessage();
    } catch (Throwable e) {
      why = unread(e);
    }
    lose(why);
    if (!closed && isShared()) {
      DriverDirectory.deleteIfStale(sharedFolder);
    }
  }

  /** Takes the replies that the server sent before it left. */
  private void takeLast() {
    whileThere(
        () -> {
          if (isUsable()) {
            takeAll();
          }
        });
  }

  /** Runs a task while no other thread takes replies, unless this session is closed. */
  private void whileThere(Runnable task) {
    replyLock.lock();
    try {
      if (!aeron.isClosed()) {
        task.run();
      }
    } finally {
      replyLock.unlock();
    }
  }

  private static String unread(Throwable e) {
    return "its replies cannot be read: " + e;
  }

  /** Takes what has arrived, unless another thread is doing so. */
  private int takeReplies() {
    if (!replyLock.tryLock()) {
      return 0;
    }
    try {
      int frames = isUsable() ? takeFrames() : 0;
      if (frames > 0) {
        lastFrame = System.nanoTime();
      }
      return frames;
    } finally {
      replyLock.unlock();
    }
  }

  private void takeAll() {
    while (takeFrames() > 0) {
      lastFrame = System.nanoTime();
    }
  }

  private int takeFrames() {
    try {
      return replies.poll(reader, FRAMES_AT_ONCE);
    } catch (MalformedMessageException e) {
      lose("it sent an invalid message: " + e.getMessage());
      return 0;
    }
  }

  /** The receiver of replies, which delivers them to the calls that wait. */
  private final class Messages implements FrameReader.Messages {
    @Override
    public void take(int code, long number, BodyReader reply) {
      PendingCall call = calls.get(number);
      if (call != null) {
        call.complete(code, reply.rest());
        if (!call.thread.equals(Thread.currentThread())) {
          sleepers.wake(call);
        }
      }
    }

    @Override
    public void takePart(long number) {
      PendingCall call = calls.get(number);
      if (call != null) {
        call.heard();
      }
    }
  }

  /** The view of this session for the sender of its requests. */
  private final class Requests implements RequestSender.Owner {
    @Override
    public boolean isUsable() {
      return Session.this.isUsable();
    }

    @Override
    public void requireUsable() {
      Session.this.requireUsable(null);
    }

    @Override
    public void owes() {
      sleepers.poll();
    }

    @Override
    public StoreTimeoutException unanswered() {
      return Session.this.unanswered();
    }
  }

  /** The view of this session for sleeping threads. */
  private final class Replies implements ReplyWaiters.Replies {
    @Override
    public int take() {
      return takeReplies();
    }

    @Override
    public void takeAllAfter(Runnable first) {
      whileThere(
          () -> {
            if (isUsable()) {
              first.run();
              takeAll();
            }
          });
    }

    @Override
    public void whileThere(Runnable task) {
      Session.this.whileThere(task);
    }

    @Override
    public boolean owes() {
      return sender.owes();
    }

    @Override
    public void sendOwed() {
      sender.sendOwed();
    }

    @Override
    public boolean isUsable() {
      return Session.this.isUsable();
    }

    @Override
    public void lose(Throwable cause) {
      Session.this.lose(unread(cause));
    }
  }

  private void lose(String why) {
    end("store server at %s is gone: %s; its keys are lost".formatted(server, why));
  }

  /**
   * Handles the end of the driver's client, which a server that closes causes as well; called by a
   * thread of the client, which must not wait.
   */
  private void endedItself() {
    isClientOver = true;
    wakeAll();
    Thread.ofVirtual()
        .name("tutti-al-end")
        .start(
            () -> {
              awaitClientLoss();
              control.close();
            });
  }

  private void awaitClientLoss() {
    awaitLoss();
    end(
        "session with store server at %s is lost: %s"
            .formatted(server, EmbeddedDriver.ENDED_ITSELF));
  }

  private void end(String why) {
    if (loss == null && !closed) {
      loss = why;
      LOG.log(Level.DEBUG, why);
    }
    wakeAll();
  }

  private void wakeAll() {
    calls.values().forEach(call -> LockSupport.unpark(call.thread));
    sleepers.wakeAll();
  }

  @Override
  public void wake(PendingCall call) {
    sleepers.wake(call);
  }

  private void requireUsable() {
    requireUsable(null);
  }

  private void requireUsable(@Nullable Throwable cause) {
    if (isClientOver && loss == null) {
      awaitClientLoss();
    }
    if (closed) {
      throw new StoreClosedException("the store at " + server + " was closed during a call");
    }
    String why = loss;
    if (why != null) {
      throw new StoreConnectionException(why, cause);
    }
  }

  @Override
  public long graceNanos() {
    return RequestSender.GRACE_NANOS;
  }

  @Override
  public StoreSilentException unanswered() {
    return new StoreSilentException("store server at " + server + " did not answer in time");
  }

  private void close() {
    closed = true;
    if (loss == null) {
      control.say(Handshake.GOODBYE);
    }
    control.close();
    wakeAll();
    long deadline = Arguments.deadline(Time.SYSTEM, CLOSE_NANOS);
    boolean quiet = sender.stop(deadline);
    if (quiet && !Locks.acquire(Time.SYSTEM, replyLock, deadline)) {
      sender.release();
      quiet = false;
    }
    if (!quiet) {
      LOG.log(
          Level.WARNING,
          "a call to the store at {0} does not return; its memory is not released",
          server);
      return;
    }
    try {
      aeron.close();
      if (ownDriver != null) {
        ownDriver.close();
      }
    } finally {
      replyLock.unlock();
      sender.release();
    }
  }
}
