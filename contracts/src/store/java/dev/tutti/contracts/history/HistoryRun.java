package dev.tutti.contracts.history;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Clients that make random calls of a store until the run {@linkplain #end() ends}, while the
 * caller may break and mend what lies between them and the store.
 *
 * <p>A client whose call fails opens another handle. Its random numbers depend on the seed alone,
 * but not which calls of clients meet. All times are of its {@link Time}.
 */
public final class HistoryRun implements AutoCloseable {
  /* The lock of this object guards the calls and the failure. */
  private static final Duration LIMIT = Duration.ofSeconds(200);
  private static final int CALLS_OF_REGISTER = 40;

  /** The length of the longest value where none is given, in bytes. */
  public static final int MOST_BYTES = 200_000;

  private final Supplier<Store> opener;
  private final boolean acknowledges;
  private final Time time;
  private final long seed;
  private final int mostBytes;
  private final List<HistoryCall> calls = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private final AtomicInteger registerCalls = new AtomicInteger();
  private volatile boolean stopped;
  private int answers;
  private long lastAnswer;
  private long longestGap;
  private @Nullable Throwable failure;

  /**
   * Starts clients.
   *
   * @param seed the seed of the random calls
   * @param clients the number of clients, each with a thread and a handle
   * @param acknowledges whether a set or a push returns only after the store has carried it out; if
   *     not, an answered call of the same handle follows each
   * @param opener opens a handle to the store, which the client closes; called from any client
   */
  public HistoryRun(long seed, int clients, boolean acknowledges, Supplier<Store> opener) {
    this(seed, clients, acknowledges, MOST_BYTES, opener);
  }

  /**
   * Starts clients whose values are of other lengths.
   *
   * @param seed the seed of the random calls
   * @param clients the number of clients, each with a thread and a handle
   * @param acknowledges whether a set or a push returns only after the store has carried it out; if
   *     not, an answered call of the same handle follows each
   * @param mostBytes the length of the longest value, in bytes, more than 100
   * @param opener opens a handle to the store, which the client closes; called from any client
   */
  public HistoryRun(
      long seed, int clients, boolean acknowledges, int mostBytes, Supplier<Store> opener) {
    this(seed, clients, acknowledges, mostBytes, opener, Time.SYSTEM);
  }

  /**
   * Starts clients in a time of their own.
   *
   * @param seed the seed of the random calls
   * @param clients the number of clients, each with a thread and a handle
   * @param acknowledges whether a set or a push returns only after the store has carried it out; if
   *     not, an answered call of the same handle follows each
   * @param mostBytes the length of the longest value, in bytes, more than 100
   * @param opener opens a handle to the store, which the client closes; called from any client
   * @param time what creates the threads, and the clock
   */
  public HistoryRun(
      long seed,
      int clients,
      boolean acknowledges,
      int mostBytes,
      Supplier<Store> opener,
      Time time) {
    this.time = time;
    this.lastAnswer = time.nanoTime();
    this.opener = opener;
    this.acknowledges = acknowledges;
    this.seed = seed;
    this.mostBytes = mostBytes;
    for (int i = 0; i < clients; i++) {
      int number = i;
      threads.add(time.start("client-" + i, () -> use(number)));
    }
  }

  private void use(int number) {
    try (HistoryClient client = new HistoryClient(this, number, seed)) {
      while (!stopped) {
        client.next();
      }
    } catch (Throwable e) {
      fail(e);
    }
  }

  private synchronized void fail(Throwable cause) {
    failure = failure == null ? cause : failure;
    notifyAll();
  }

  /**
   * Waits until the store has answered more calls.
   *
   * @param more how many more than at the time of this call
   * @throws AssertionError if a client failed, or the answers do not come within 200 s
   */
  public synchronized void awaitAnswers(int more) throws InterruptedException {
    int goal = answers + more;
    long deadline = time.nanoTime() + LIMIT.toNanos();
    while (answers < goal) {
      requireSound();
      long left = deadline - time.nanoTime();
      if (left <= 0) {
        throw new AssertionError(
            "%d of %d calls were answered within %s".formatted(answers - goal + more, more, LIMIT));
      }
      time.await(this, left);
    }
    requireSound();
  }

  private void requireSound() {
    if (failure != null) {
      throw new AssertionError("a client failed: " + failure, failure);
    }
  }

  /**
   * Stops the clients, reads the counter, the registers and the queue until it is empty, and checks
   * the history.
   *
   * @return a sentence for each violation; empty if the history is correct
   * @throws AssertionError if a client failed, or does not end
   */
  public List<String> end() throws InterruptedException {
    awaitClients();
    synchronized (this) {
      requireSound();
    }
    try (HistoryClient last = new HistoryClient(this, threads.size(), seed)) {
      boolean all = false;
      while (!all) {
        all = last.add(0).isAnswered();
      }
      int registers = registerCalls.get() / CALLS_OF_REGISTER;
      for (int i = 0; i <= registers; i++) {
        var _ = last.get(name(i * CALLS_OF_REGISTER));
      }
      HistoryCall pop = last.pop();
      while (!pop.isAnswered() || pop.result() != null) {
        pop = last.pop();
      }
    }
    return HistoryChecker.violations(history());
  }

  private void awaitClients() throws InterruptedException {
    stopped = true;
    for (Thread thread : threads) {
      if (!time.join(thread, LIMIT.multipliedBy(2).toNanos())) {
        throw new AssertionError(thread.getName() + " made a call that did not end");
      }
    }
  }

  /**
   * Stops the clients, whose calls are interrupted.
   *
   * @throws AssertionError if a client does not end
   */
  public void stop() {
    threads.forEach(Thread::interrupt);
    try {
      awaitClients();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted while clients ended", e);
    }
  }

  /** Returns the calls that have ended. */
  public synchronized List<HistoryCall> history() {
    return List.copyOf(calls);
  }

  synchronized HistoryCall add(HistoryCall call) {
    calls.add(call);
    if (call.isAnswered()) {
      answers++;
      longestGap = Math.max(longestGap, call.returned() - lastAnswer);
      lastAnswer = call.returned();
      notifyAll();
    }
    return call;
  }

  /** Returns the register for the next call: a few calls use each, so that the search is short. */
  String register() {
    return name(registerCalls.getAndIncrement());
  }

  private static String name(int call) {
    return "register" + call / CALLS_OF_REGISTER;
  }

  /** Returns the longest time so far without an answer to any client, since the clients started. */
  public synchronized Duration longestGap() {
    return Duration.ofNanos(longestGap);
  }

  Time time() {
    return time;
  }

  int mostBytes() {
    return mostBytes;
  }

  boolean acknowledges() {
    return acknowledges;
  }

  Store open() {
    return opener.get();
  }

  /** Throws what an attempt to open a handle threw, if no client had an answer for long. */
  synchronized void requireTime(StoreException cause) {
    boolean late = time.nanoTime() - lastAnswer > LIMIT.toNanos();
    if (late || Thread.currentThread().isInterrupted()) {
      throw cause;
    }
  }

  @Override
  public void close() {
    stop();
  }
}
