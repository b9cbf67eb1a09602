package dev.tutti.fake.simulation;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Runs the threads of simulated processes one at a time, in an order that a seed decides. */
final class SimulatedScheduler {
  /*
   * One platform thread, the carrier, runs everything: a step is one continuation of a virtual
   * thread, from where it was until it parks, yields or ends. What a step makes runnable, it adds
   * to "ready" itself, on the carrier. Only threads that waited for a monitor come from elsewhere
   * (VirtualThreads.settle), through "released"; they are added in the order of their numbers. So
   * does the running thread that waits for a monitor of a thread outside: it continues in its step.
   * A timer of the JDK would bring in real time, so a thread that waits for one and a continuation
   * from any other thread fail the run: what waits with a limit must wait through Time.
   *
   * If nothing is ready, time leaps to the next timer. If there is none, what still waits will wait
   * for ever, and the run fails with the stacks of all threads.
   *
   * Half of the seeds choose among the ready threads uniformly. The others give each thread a
   * priority and lower that of the running thread at a few steps (Burckhardt et al., ASPLOS 2010),
   * which finds orders sooner that need few changes between threads. A thread that yields goes to
   * the end.
   */
  private static final int CHANGES = 3;
  private static final int CHANGES_WITHIN = 2000;

  /** How long a yield takes, so that a thread that polls sees the time pass. */
  private static final long YIELD_NANOS = 5_000;

  private static final long MOST_STEPS = 20_000_000;

  private static final Comparator<SimulatedThread> HIGHEST =
      Comparator.comparingLong(thread -> thread.priority);

  private final SplittableRandom random;
  private final boolean uniform;
  private final long[] changes = new long[CHANGES];
  private final VirtualThreads virtual;
  private final List<SimulatedThread> ready = new ArrayList<>();

  /** Those of the ready threads that may run, while one of them is chosen. */
  private final List<SimulatedThread> candidates = new ArrayList<>();

  private final Queue<SimulatedThread> released = new ConcurrentLinkedQueue<>();
  private final PriorityQueue<Timer> timers =
      new PriorityQueue<>(
          Comparator.comparingLong((Timer timer) -> timer.atNanos)
              .thenComparingLong(timer -> timer.number));
  private final List<SimulatedThread> alive = new ArrayList<>();
  private final Trace trace = new Trace();
  private final SimulatedProcess outside = new SimulatedProcess(this, "world");
  private final long networkSeed;
  private @Nullable Object network;
  private final Thread carrier = Thread.currentThread();
  private @Nullable SimulatedThread running;
  private @Nullable Throwable failure;

  private long nowNanos;
  private long steps;
  private long timerCount;
  private long threadCount;
  private long lowest;

  /** How many threads are yet to be started, for which the run continues. */
  private int expected;

  /** An action at a time. */
  static final class Timer {
    private final long atNanos;
    private final long number;
    private final SimulatedProcess process;
    private final Runnable action;

    private Timer(long atNanos, long number, SimulatedProcess process, Runnable action) {
      this.atNanos = atNanos;
      this.number = number;
      this.process = process;
      this.action = action;
    }
  }

  /**
   * Creates the scheduler of one run; the calling thread is its carrier.
   *
   * @param seed decides the order of threads
   * @throws IllegalStateException if this JVM cannot simulate
   */
  SimulatedScheduler(long seed) {
    unusableReason()
        .ifPresent(
            reason -> {
              throw new IllegalStateException(reason);
            });
    this.virtual = new VirtualThreads();
    this.random = new SplittableRandom(seed);
    this.uniform = random.nextBoolean();
    this.networkSeed = ~seed;
    for (int i = 0; i < CHANGES; i++) {
      changes[i] = random.nextLong(CHANGES_WITHIN);
    }
  }

  /** Returns why this JVM cannot simulate; empty if it can. */
  static Optional<String> unusableReason() {
    Module own = SimulatedScheduler.class.getModule();
    return Object.class.getModule().isOpen("java.lang", own)
        ? Optional.empty()
        : Optional.of(
            "a simulation needs the JVM option --add-opens=java.base/java.lang="
                + (own.isNamed() ? own.getName() : "ALL-UNNAMED"));
  }

  long nowNanos() {
    return nowNanos;
  }

  /** Returns the process whose threads do what happens outside of all other processes. */
  SimulatedProcess outside() {
    return outside;
  }

  /**
   * Returns the network of the run.
   *
   * @param make makes it at the first call
   */
  @SuppressWarnings("unchecked") // there is one kind of network
  <N> N network(Function<SplittableRandom, N> make) {
    Object known = network;
    if (known == null) {
      known = make.apply(new SplittableRandom(networkSeed));
      network = known;
    }
    return (N) known;
  }

  Trace trace() {
    return trace;
  }

  SplittableRandom random() {
    return random;
  }

  /** Creates a number for a new thread. */
  long nextThread(SimulatedThread thread) {
    alive.add(thread);
    return threadCount++;
  }

  /** Returns the priority of a new thread; the highest runs first. */
  long firstPriority() {
    return random.nextLong(1L << 32);
  }

  /** Notes that a thread has ended. */
  void ended(SimulatedThread thread, @Nullable Throwable uncaught) {
    alive.remove(thread);
    if (uncaught != null) {
      fail(new IllegalStateException("thread " + thread.name() + " threw " + uncaught, uncaught));
    }
  }

  /** Fails the run; the first cause counts. */
  void fail(Throwable cause) {
    if (failure == null) {
      failure = cause;
    }
  }

  /** Makes a thread runnable; called by the JDK on whatever thread releases it. */
  void add(SimulatedThread thread) {
    Thread caller = Thread.currentThread();
    if (caller.equals(carrier) || (running != null && running.is(caller))) {
      if (!thread.equals(running)) {
        ready.add(thread);
      } else if (thread.isAtMonitor()) {
        released.add(thread);
      } else {
        thread.priority = --lowest;
        nowNanos += YIELD_NANOS;
        ready.add(thread);
      }
    } else {
      if (!caller.getName().contains("unblock")) {
        fail(
            new IllegalStateException(
                "thread " + thread.name() + " was released by real time, on " + caller));
      }
      released.add(thread);
      LockSupport.unpark(carrier);
    }
  }

  /**
   * Runs an action at a time, on the carrier; it must not wait.
   *
   * @param atNanos the time in terms of {@link #nowNanos()}
   * @param process the process to which the timer belongs; if it is paused, the timer waits
   */
  Timer at(long atNanos, SimulatedProcess process, Runnable action) {
    Timer timer = new Timer(Math.max(atNanos, nowNanos), timerCount++, process, action);
    timers.add(timer);
    return timer;
  }

  /** Runs an action at a time that starts a thread; the run does not end before. */
  void startAt(long atNanos, Runnable action) {
    expected++;
    Timer _ =
        at(
            atNanos,
            outside,
            () -> {
              expected--;
              action.run();
            });
  }

  void cancel(Timer timer) {
    boolean _ = timers.remove(timer);
  }

  /**
   * Runs until no thread is left.
   *
   * @param untilNanos the time at which threads that are left fail the run
   * @throws IllegalStateException if threads wait for ever, or for real time
   */
  void run(long untilNanos) {
    try {
      steps(untilNanos);
    } finally {
      alive.forEach(SimulatedThread::abandon);
    }
  }

  private void steps(long untilNanos) {
    while (failure == null) {
      addReleased();
      runDue();
      SimulatedThread next = choose();
      if (next == null) {
        if (expected == 0 && alive.stream().noneMatch(SimulatedThread::matters)) {
          return;
        }
        leap(untilNanos);
      } else {
        step(next);
      }
    }
    if (failure instanceof Error error) {
      throw error;
    }
    throw new IllegalStateException(failure + trace.last(), failure);
  }

  private void step(SimulatedThread next) {
    if (++steps > MOST_STEPS) {
      fail(new IllegalStateException("the run does not end: " + next.name() + " continues"));
    }
    trace.add(nowNanos, next);
    running = next;
    next.takeContinuation().run();
    passOutsiders(next);
    running = null;
    if (next.waitsByRealTime()) {
      fail(new IllegalStateException("a thread waits by real time\n" + next.describe()));
    }
    for (SimulatedThread thread : alive) {
      if (thread.isAtMonitor()) {
        virtual.settle();
        return;
      }
    }
  }

  /**
   * Continues the same step of a thread that waits for a monitor of a thread outside of the run,
   * such as one that flushes the output of tests. No thread of the run comes to hold it meanwhile.
   */
  private void passOutsiders(SimulatedThread thread) {
    while (thread.isEntering()) {
      Object monitor = thread.awaitedMonitor();
      virtual.settle();
      while (!released.remove(thread)) {
        if (monitor == null || isHeldWithin(monitor)) {
          return;
        }
        LockSupport.park(this);
      }
      thread.takeContinuation().run();
    }
  }

  private boolean isHeldWithin(Object monitor) {
    for (SimulatedThread thread : alive) {
      if (thread.holds(monitor)) {
        return true;
      }
    }
    return false;
  }

  private void addReleased() {
    if (!released.isEmpty()) {
      List<SimulatedThread> all = new ArrayList<>();
      for (SimulatedThread each = released.poll(); each != null; each = released.poll()) {
        all.add(each);
      }
      all.sort(Comparator.comparingLong(thread -> thread.number));
      ready.addAll(all);
    }
  }

  /** Chooses the next thread; null if none is ready. */
  private @Nullable SimulatedThread choose() {
    candidates.clear();
    for (SimulatedThread thread : ready) {
      if (thread.mayRun(nowNanos)) {
        candidates.add(thread);
      }
    }
    if (candidates.isEmpty()) {
      return null;
    }
    SimulatedThread chosen =
        uniform
            ? candidates.get(random.nextInt(candidates.size()))
            : Collections.max(candidates, HIGHEST);
    for (long change : changes) {
      if (change == steps) {
        chosen.priority = --lowest;
      }
    }
    ready.remove(chosen);
    return chosen;
  }

  /** Runs what became due while threads yielded. */
  private void runDue() {
    Timer next = timers.peek();
    while (next != null && next.atNanos < nowNanos) {
      leap(Long.MAX_VALUE);
      next = timers.peek();
    }
  }

  /** Moves the time on to the next timer, or to the end of a pause, and runs what is due. */
  private void leap(long untilNanos) {
    Timer next = timers.poll();
    if (next == null) {
      fail(new IllegalStateException("all threads wait for ever" + stacks()));
      return;
    }
    if (next.process.isGone()) {
      return;
    }
    if (next.atNanos > untilNanos) {
      fail(new IllegalStateException("threads are left at the end of the run" + stacks()));
      return;
    }
    nowNanos = Math.max(nowNanos, next.atNanos);
    long pausedUntil = next.process.pausedUntilNanos();
    if (pausedUntil > nowNanos) {
      timers.add(new Timer(pausedUntil, next.number, next.process, next.action));
    } else {
      next.action.run();
    }
  }

  private String stacks() {
    StringBuilder text = new StringBuilder(1024);
    for (SimulatedThread thread : alive) {
      text.append('\n').append(thread.describe());
    }
    return text.toString();
  }
}
