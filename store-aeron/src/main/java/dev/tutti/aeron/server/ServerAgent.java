package dev.tutti.aeron.server;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.cpu.wait.Futex;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.table.ServerMemory;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** The thread that serves all clients and owns the keys. */
public final class ServerAgent implements Runnable {
  /*
   * After a moment without requests, the thread arms its bell and sleeps there. A request through
   * shared memory wakes it, or the thread "tutti-as-watch", which waits in a selector for the ends of
   * clients and for tasks. UDP rings no bell, nor does a client that cannot wake others, and nothing
   * signals that a stream has room again. While there is such a client, or replies wait for room,
   * the thread therefore polls from time to time.
   */
  private static final Logger LOG = System.getLogger(LogNames.SERVER);
  private static final String LEFT = "client left";
  private static final int TURNS = 1024;
  private static final long LONGEST_SLEEP_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** How long the thread takes only brief sleeps before it sleeps until woken, which costs more. */
  private static final long BRIEF_NANOS = TimeUnit.MICROSECONDS.toNanos(500);

  /** The same if nobody wakes it. */
  private static final long LONG_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final List<ServerClient> clients = new ArrayList<>();
  private final ServerMemory memory = new ServerMemory(Time.SYSTEM);
  private final RequestHandler commands =
      new RequestHandler(
          memory.table(), Math.toIntExact(Math.min(memory.one(), Protocol.MAX_BODY_BYTES)));
  private final LimitedLog log;
  private final boolean known;
  private final Selector selector;
  private final Doorbell bell;
  private final WaitStrategy wait;
  private final long stuckNanos;
  private final String server;
  private final Futex futex = new Futex();
  private final ControlWatch watch;
  private int turns;
  private boolean ended;
  private volatile @Nullable Thread thread;
  private volatile boolean stopped;
  private volatile @Nullable Throwable failure;

  /**
   * Creates an agent.
   *
   * @param known whether all clients have proved a token, so that none is a stranger
   */
  public ServerAgent(
      String server, Doorbell bell, long stuckNanos, boolean spin, LimitedLog log, boolean known)
      throws IOException {
    this.log = log;
    this.known = known;
    this.server = server;
    this.bell = bell;
    this.stuckNanos = stuckNanos;
    this.wait = WaitStrategy.polling(spin, Time.SYSTEM);
    this.selector = Selector.open();
    this.watch = new ControlWatch(selector, this::awake, this::fail);
  }

  public RequestHandler commands() {
    return commands;
  }

  /**
   * Starts serving a client; called from any thread.
   *
   * @return whether this thread is still serving
   */
  public boolean add(ServerClient client) {
    return execute(() -> begin(client));
  }

  /**
   * Makes the thread run a task between requests; called from any thread.
   *
   * @return whether this thread is still serving
   */
  public boolean execute(Runnable task) {
    synchronized (this) {
      if (ended) {
        return false;
      }
      tasks.add(task);
    }
    wake();
    return true;
  }

  private void begin(ServerClient client) {
    assert Thread.currentThread().equals(thread);
    clients.add(client);
    client.count(memory.client());
    try {
      client.register(selector);
      selector.wakeup();
    } catch (IOException e) {
      drop(client, Level.DEBUG, e.toString());
    } catch (ClosedSelectorException e) {
      LOG.log(
          Level.DEBUG, "a client connected while the server was stopping, and will be notified", e);
    }
  }

  /** Makes the thread look for requests; called from any other thread. */
  public void wake() {
    selector.wakeup();
  }

  /** Ends a sleep of the thread. */
  private void awake() {
    bell.ring();
    LockSupport.unpark(thread);
  }

  /** Ends the thread; called from any other thread. */
  public void stop() {
    stopped = true;
    wake();
  }

  /** Ends the thread because of a failure; called from any other thread. */
  public void fail(Throwable cause) {
    failure = cause;
    stop();
    awake();
  }

  @Override
  public void run() {
    Throwable problem = null;
    thread = Thread.currentThread();
    watch.start();
    try (selector) {
      while (!stopped) {
        if (work() > 0) {
          wait.reset();
        } else if (!wait.staysAwake()) {
          sleep();
        }
        readControls();
      }
      problem = failure;
    } catch (IOException | RuntimeException | Error e) {
      problem = e;
    } finally {
      end(problem);
    }
  }

  /** Ends the sessions; actions that need memory come last. */
  private void end(@Nullable Throwable problem) {
    synchronized (this) {
      ended = true;
    }
    try {
      runTasks();
    } finally {
      for (ServerClient client : clients) {
        leave(client);
      }
      clients.clear();
      watch.end();
    }
    if (problem != null) {
      LOG.log(Level.ERROR, server + " stopped: " + problem, problem);
    }
  }

  /** Reads from clients when notified. */
  private void readControls() throws IOException {
    if (watch.isDue()) {
      selector.selectNow(this::readControl);
      watch.goOn();
    }
    if (++turns % TURNS == 0) {
      dropLost();
      boolean _ = canWake();
    }
  }

  private void leave(ServerClient client) {
    try {
      client.leave();
    } catch (RuntimeException | OutOfMemoryError e) {
      log.warn(server + ": cannot notify a client that the server is stopping: " + e);
    }
  }

  private void sleep() {
    boolean inBell = canWake();
    boolean looks = !isWoken() || (!inBell && !clients.isEmpty());
    if (wait.pausesWithin(looks ? LONG_NANOS : BRIEF_NANOS)) {
      return;
    }
    long nanos = looks ? LOOK_NANOS : LONGEST_SLEEP_NANOS;
    if (inBell) {
      bell.arm();
    }
    if (work() > 0) {
      wait.reset();
    } else if (!watch.isDue()) {
      if (inBell) {
        bell.sleep(futex, nanos);
      } else {
        Time.SYSTEM.park(this, nanos);
      }
    }
    if (inBell) {
      bell.disarm();
    }
  }

  /** Returns whether this process can wake others; begins to link the futex once a client can. */
  private boolean canWake() {
    if (bell.canWake()) {
      return true;
    }
    if (Futex.isLinked()) {
      bell.disarm();
      return true;
    }
    if (clients.stream().anyMatch(ServerClient::canWake)) {
      Futex.link();
    }
    return false;
  }

  /**
   * Returns whether this thread is woken whenever there is something to do, once it sleeps in its
   * bell.
   */
  private boolean isWoken() {
    for (ServerClient client : clients) {
      if (client.isBehind() || !client.canWake()) {
        return false;
      }
    }
    return true;
  }

  /** Handles a client that has ended, or says so. */
  private void readControl(SelectionKey key) {
    ServerClient client = (ServerClient) key.attachment();
    try {
      if (!client.readControl()) {
        drop(client, Level.DEBUG, "its process ended, or it closed the store");
      }
    } catch (MalformedMessageException e) {
      drop(client, Level.WARNING, String.valueOf(e.getMessage()));
    } catch (IOException e) {
      drop(client, Level.DEBUG, e.toString());
    }
    wait.reset();
  }

  private int work() {
    assert Thread.currentThread().equals(thread);
    int done = runTasks();
    for (int i = 0; i < clients.size(); i++) {
      ServerClient client = clients.get(i);
      try {
        done += client.work();
      } catch (RuntimeException | OutOfMemoryError e) {
        drop(client, Level.WARNING, e + (e instanceof Error ? "; check -Xmx" : ""));
      }
    }
    relieve();
    if (done == 0) {
      dropLost();
    }
    return done;
  }

  /** Drops the clients that hold most while all together hold too much. */
  private void relieve() {
    while (memory.isCrowded() && !clients.isEmpty()) {
      long now = System.nanoTime();
      ServerClient most = clients.getFirst();
      for (ServerClient client : clients) {
        most = client.memory().weight(now) > most.memory().weight(now) ? client : most;
      }
      drop(most, Level.WARNING, most.memory().crowdedMessage());
    }
  }

  private int runTasks() {
    int done = 0;
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
      done++;
    }
    return done;
  }

  private void dropLost() {
    log.tick();
    long now = System.nanoTime();
    for (int i = clients.size() - 1; i >= 0; i--) {
      @Nullable String why = clients.get(i).lost(now, stuckNanos);
      if (why != null) {
        drop(clients.get(i), Level.WARNING, why);
      }
    }
  }

  private void drop(ServerClient client, Level level, String why) {
    assert Thread.currentThread().equals(thread);
    if (clients.remove(client)) {
      client.close();
      selector.wakeup();
      commands.execute(client.wills.values());
      String line = "%s: client %s left: %s".formatted(server, client.peer, why);
      if (level == Level.WARNING && known) {
        log.warn(line);
      } else if (level == Level.WARNING) {
        log.warn(LEFT, client.address(), line);
      } else {
        LOG.log(level, line);
      }
    }
  }
}
