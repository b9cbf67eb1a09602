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
import org.jspecify.annotations.Nullable;

/** The thread that serves all clients and owns the keys. */
public final class ServerAgent implements Runnable {
  /*
   * After a moment without requests, the thread arms its bell and sleeps in a selector of the
   * control connections. A request through shared memory, the end of a client, or a task wakes it.
   * Once a client can wake it in the bell itself, which is several times as fast, it sleeps there,
   * and leaves the selector to a thread "tutti-as-hear". UDP rings no bell, and nothing signals
   * that a stream has room again. While there is a client on another host, or replies wait for
   * room, the thread therefore polls from time to time.
   */
  private static final Logger LOG = System.getLogger(LogNames.SERVER);
  private static final String LEFT = "client left";
  private static final int TURNS = 1024;
  private static final long LONGEST_SLEEP_MILLIS = 1000;

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
  private @Nullable ControlWatch watch;
  private boolean wakes;
  private int remote;
  private int turns;
  private boolean ended;
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
    clients.add(client);
    client.count(memory.client());
    remote += client.isShared() ? 0 : 1;
    try {
      client.register(selector);
      lookAgain();
    } catch (IOException e) {
      drop(client, Level.DEBUG, e.toString());
    } catch (ClosedSelectorException e) {
      LOG.log(
          Level.DEBUG, "a client connected while the server was stopping, and will be notified", e);
    }
  }

  /** Makes the selector notice a new or closed connection, if another thread is waiting in it. */
  private void lookAgain() {
    if (watch != null) {
      selector.wakeup();
    }
  }

  /** Makes the thread look for requests; called from any other thread. */
  public void wake() {
    selector.wakeup();
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
    bell.wakeSleeper();
  }

  @Override
  public void run() {
    Throwable problem = null;
    try (selector) {
      while (!stopped) {
        if (work() > 0) {
          wait.reset();
        } else if (!wait.staysAwake()) {
          sleep();
        }
        hear();
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
      if (watch != null) {
        watch.end();
      }
    }
    if (problem != null) {
      LOG.log(Level.ERROR, server + " stopped: " + problem, problem);
    }
  }

  /** Reads from clients when notified, or from time to time if no other thread watches them. */
  private void hear() throws IOException {
    boolean often = ++turns % TURNS == 0;
    ControlWatch other = watch;
    if (other == null ? often : other.isDue()) {
      selector.selectNow(this::heard);
      if (other != null) {
        other.goOn();
      }
    }
    if (often) {
      dropLost();
    }
  }

  private void leave(ServerClient client) {
    try {
      client.leave();
    } catch (RuntimeException | OutOfMemoryError e) {
      log.warn(server + ": cannot tell a client that the server is stopping: " + e);
    }
  }

  private void sleep() throws IOException {
    boolean looks = remote > 0 || isAnyBehind();
    if (wait.pausesWithin(looks ? LONG_NANOS : BRIEF_NANOS)) {
      return;
    }
    long millis = looks ? 1 : LONGEST_SLEEP_MILLIS;
    ControlWatch other = watch();
    if (other != null) {
      bell.armForSleep();
      if (work() > 0) {
        wait.reset();
      } else if (!other.isDue()) {
        bell.sleep(futex, TimeUnit.MILLISECONDS.toNanos(millis));
      }
    } else {
      bell.arm();
      if (work() == 0) {
        int _ = Time.SYSTEM.select(selector, this::heard, TimeUnit.MILLISECONDS.toNanos(millis));
      } else {
        wait.reset();
      }
    }
    bell.disarm();
  }

  /**
   * Returns the watch of the clients for the time when this thread sleeps in the bell, or null if
   * it cannot sleep there.
   */
  private @Nullable ControlWatch watch() {
    if (wakes && Futex.isLinked()) {
      wakes = false;
      clients.forEach(ServerClient::sayWakes);
      if (watch == null) {
        watch = new ControlWatch(selector, bell, this::fail);
        watch.start();
      }
    }
    return watch;
  }

  private boolean isAnyBehind() {
    for (ServerClient client : clients) {
      if (client.isBehind()) {
        return true;
      }
    }
    return false;
  }

  /** Handles a client that rings, or has ended. */
  private void heard(SelectionKey key) {
    ServerClient client = (ServerClient) key.attachment();
    try {
      if (!client.hears()) {
        drop(client, Level.DEBUG, "its process ended, or it closed the store");
      }
      wakes |= client.wakes();
    } catch (MalformedMessageException e) {
      drop(client, Level.WARNING, String.valueOf(e.getMessage()));
    } catch (IOException e) {
      drop(client, Level.DEBUG, e.toString());
    }
    wait.reset();
  }

  private int work() {
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
    if (clients.remove(client)) {
      remote -= client.isShared() ? 0 : 1;
      client.close();
      lookAgain();
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
