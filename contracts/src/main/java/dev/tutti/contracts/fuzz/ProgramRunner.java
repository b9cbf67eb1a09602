package dev.tutti.contracts.fuzz;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Store;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.spi.Time;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** A runner of a program on ranks that are threads of this process. */
final class ProgramRunner {
  private static final Duration GRACE = Duration.ofSeconds(20);

  private final ContractSubject subject;
  private final Program program;
  private final IntFunction<Time> times;
  private final Time time;
  private final Map<Integer, RankRun> runs = new TreeMap<>();
  private final Map<Integer, ProcessGroup> worlds = new ConcurrentHashMap<>();
  private final List<Thread> ranks = new ArrayList<>();
  private long steps;
  private long elements;
  private int ended;
  private @Nullable String failure;

  /**
   * Prepares to run a program.
   *
   * @param own the ranks of the world that this process runs
   */
  ProgramRunner(ContractSubject subject, Program program, List<Integer> own) {
    this(subject, program, own, _ -> Time.SYSTEM, Time.SYSTEM);
  }

  /**
   * Prepares to run a program in times of its own.
   *
   * @param times returns the time of a rank
   * @param time the time of the runner
   */
  ProgramRunner(
      ContractSubject subject,
      Program program,
      List<Integer> own,
      IntFunction<Time> times,
      Time time) {
    this.subject = subject;
    this.program = program;
    this.times = times;
    this.time = time;
    for (int rank : own) {
      runs.put(rank, new RankRun(subject, program, rank, this, times.apply(rank)));
    }
  }

  /**
   * Runs the program once.
   *
   * @param store the store through which the ranks meet
   * @param patience the time without any progress after which the program counts as hanging
   */
  Outcome run(Store store, Duration patience) throws InterruptedException {
    return run(_ -> store, patience);
  }

  /**
   * Does the same with a store of each rank.
   *
   * @param stores opens the store of a rank; called by its thread
   */
  Outcome run(IntFunction<Store> stores, Duration patience) throws InterruptedException {
    runs.forEach(
        (rank, run) ->
            ranks.add(
                times
                    .apply(rank)
                    .unstarted("rank-" + rank, () -> runRank(rank, run, stores, patience))));
    ranks.forEach(Thread::start);
    Outcome outcome = awaitEnd(patience);
    if (outcome.isFailure()) {
      stop();
    }
    for (Thread thread : ranks) {
      boolean _ = time.join(thread, GRACE.toNanos());
    }
    return outcome;
  }

  private void runRank(int rank, RankRun run, IntFunction<Store> stores, Duration patience) {
    try {
      GroupOptions options =
          GroupOptions.DEFAULT
              .withProvider(subject.provider())
              .withSettings(subject.settings())
              .withStore(stores.apply(rank))
              .withRank(rank)
              .withSize(program.size())
              .withTime(times.apply(rank))
              .withTimeout(patience.multipliedBy(4));
      Registration leave = subject.enter(rank);
      try (ProcessGroup world = ProcessGroup.init(subject.options(options))) {
        worlds.put(rank, world);
        stepped(0);
        run.run(world);
      } finally {
        leave.close();
      }
    } catch (Throwable e) {
      fail("rank " + rank + ", while it joined or left", e);
    } finally {
      synchronized (this) {
        ended++;
        steps++;
        notifyAll();
      }
    }
  }

  /** Notes that a step has ended; called by the threads of the ranks. */
  synchronized void stepped(long count) {
    steps++;
    elements += count;
  }

  /** Notes a failure, of which the first one counts; called by the threads of the ranks. */
  synchronized void fail(String where, Throwable thrown) {
    if (failure == null) {
      StringWriter text = new StringWriter();
      thrown.printStackTrace(new PrintWriter(text));
      failure = where + ":\n" + text;
      notifyAll();
    }
  }

  /**
   * Waits for the end, for a failure, or until there has been no progress for the patience time.
   */
  private synchronized Outcome awaitEnd(Duration patience) throws InterruptedException {
    long seen = -1;
    long since = time.nanoTime();
    while (ended < ranks.size() && failure == null) {
      if (steps != seen) {
        seen = steps;
        since = time.nanoTime();
      }
      long left = patience.toNanos() - (time.nanoTime() - since);
      if (left <= 0) {
        return new Outcome(Outcome.Ending.HUNG, describe(patience), steps, elements);
      }
      time.await(this, Math.min(left, TimeUnit.MILLISECONDS.toNanos(500)));
    }
    return failure == null
        ? new Outcome(Outcome.Ending.PASSED, "", steps, elements)
        : new Outcome(Outcome.Ending.FAILED, failure, steps, elements);
  }

  private String describe(Duration patience) {
    StringBuilder text =
        new StringBuilder("no step ended within " + patience + "; stack traces of the threads:\n");
    runs.values().forEach(run -> text.append(run.describe()));
    worlds.forEach(
        (rank, world) ->
            text.append(
                "flight record of rank %d: %s%n"
                    .formatted(rank, world.diagnostics().flightRecord())));
    return text.toString();
  }

  /**
   * Ends everything that is still running: aborts the groups, and interrupts threads that wait for
   * anything else.
   */
  private void stop() throws InterruptedException {
    worlds.values().forEach(world -> world.abort("the program failed"));
    for (Thread thread : ranks) {
      boolean _ = time.join(thread, TimeUnit.SECONDS.toNanos(2));
    }
    runs.values().forEach(RankRun::interrupt);
    ranks.forEach(Thread::interrupt);
  }
}
