package dev.tutti.fake.simulation;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.fake.Faults;
import dev.tutti.fake.FaultyProvider;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Runs code once for each rank of a group in a simulation: a seed decides the order of all threads,
 * how long messages to the store take, and random numbers, and time passes only when all threads
 * wait. A run takes milliseconds, however long its waits are, and the same seed repeats it exactly.
 *
 * <p>The runtime and the backend "threaded" are real. Each rank has a process of its own, with
 * virtual threads, which can crash, stand still, or lose its connection to the store ({@link
 * FaultPlan}). Code in a body that waits with a limit of its own, sleeps, or reads the clock must
 * do so by {@link GroupOptions#time()} or {@link #sleep}; a wait in real time fails the run.
 *
 * <p>The JVM needs {@code --add-opens=java.base/java.lang=ALL-UNNAMED}. Instances are immutable.
 *
 * @param size the number of ranks
 * @param seed what decides everything
 * @param timeout the deadline of operations and of the set-up, in simulated time
 * @param plan the faults
 * @param options changes the options with which each rank joins
 * @param joiners when further processes join the job, from the start of the world
 */
public record SimulatedWorld(
    int size,
    long seed,
    Duration timeout,
    FaultPlan plan,
    UnaryOperator<GroupOptions> options,
    List<Duration> joiners) {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  /** How late peers see that the connections of a crashed process have ended, at most. */
  private static final long RESET_NANOS = 5_000_000;

  /**
   * How a rank ended.
   *
   * @param rank the rank; those that join come after the others
   * @param crashed whether its process crashed
   * @param failure what its body, or joining and leaving, threw; null if nothing
   * @param after when it ended, from the start of the world
   */
  public record RankEnd(int rank, boolean crashed, @Nullable Throwable failure, Duration after) {}

  /**
   * What a run leaves.
   *
   * @param ends how each rank ended, in rank order
   * @param steps the number of steps that threads made
   * @param hash the hash of all steps, which is the same whenever the same run is repeated
   */
  public record Outcome(List<RankEnd> ends, long steps, long hash) {}

  /** Checks the number of ranks and the timeout. */
  public SimulatedWorld {
    joiners = List.copyOf(joiners);
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, not " + size);
    }
    if (!timeout.isPositive()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
  }

  /**
   * Creates a world without faults, of seed 0 and with a timeout of 30 s.
   *
   * @param size the number of ranks
   */
  public static SimulatedWorld of(int size) {
    return new SimulatedWorld(
        size, 0, TIMEOUT, FaultPlan.NONE, UnaryOperator.identity(), List.of());
  }

  /**
   * Sets what decides everything.
   *
   * @param newSeed any number
   */
  public SimulatedWorld withSeed(long newSeed) {
    return new SimulatedWorld(size, newSeed, timeout, plan, options, joiners);
  }

  /**
   * Sets the deadline of operations and of the set-up.
   *
   * @param newTimeout the deadline in simulated time
   */
  public SimulatedWorld withTimeout(Duration newTimeout) {
    return new SimulatedWorld(size, seed, newTimeout, plan, options, joiners);
  }

  /**
   * Sets what goes wrong.
   *
   * @param newPlan the faults
   */
  public SimulatedWorld withFaults(FaultPlan newPlan) {
    return new SimulatedWorld(size, seed, timeout, newPlan, options, joiners);
  }

  /**
   * Changes the options with which each rank joins. The store, rank, size, timeout, time and
   * backend are already set.
   *
   * @param change returns the modified options; called by each rank's thread
   */
  public SimulatedWorld withOptions(UnaryOperator<GroupOptions> change) {
    UnaryOperator<GroupOptions> before = options;
    return new SimulatedWorld(
        size, seed, timeout, plan, given -> change.apply(before.apply(given)), joiners);
  }

  /**
   * Adds processes that {@linkplain ProcessGroup#join join} the job and then run the same code. A
   * fault plan counts them after the ranks.
   *
   * @param times when each joins, from the start of the world
   */
  public SimulatedWorld withJoiners(List<Duration> times) {
    return new SimulatedWorld(size, seed, timeout, plan, options, times);
  }

  /**
   * Runs a body once on each rank, on the calling thread.
   *
   * @param body the code that each rank runs
   * @throws IllegalStateException if threads wait for ever, outlive a simulated day, wait in real
   *     time, or throw what nobody catches; with the stacks of all threads or the last steps
   */
  public Outcome run(RankBody body) {
    return new Run(body).run();
  }

  /**
   * Lets the calling thread of a world sleep.
   *
   * @param duration how long, in simulated time
   * @throws IllegalStateException if the calling thread belongs to no world
   */
  public static void sleep(Duration duration) {
    SimulatedProcess process = SimulatedProcess.current();
    long deadline = process.time().deadline(duration);
    while (process.time().nanoTime() - deadline < 0) {
      process.time().park(process, deadline - process.time().nanoTime());
    }
  }

  /** One run. */
  private final class Run {
    private final RankBody body;
    private final SplittableRandom random = new SplittableRandom(seed);
    private final SimulatedScheduler scheduler = new SimulatedScheduler(random.nextLong());
    private final SimulatedServer server = new SimulatedServer(scheduler, random.split());

    /** The faults of each process. */
    private final List<Faults> faults = new ArrayList<>();

    private final List<SimulatedProcess> processes = new ArrayList<>();
    private final @Nullable RankEnd[] ends = new RankEnd[size + joiners.size()];

    Run(RankBody body) {
      this.body = body;
    }

    Outcome run() {
      for (int rank = 0; rank < ends.length; rank++) {
        processes.add(new SimulatedProcess(scheduler, "rank " + rank));
        faults.add(new Faults());
      }
      for (Fault fault : plan.faults()) {
        var _ = scheduler.at(fault.at().toNanos(), scheduler.outside(), () -> begin(fault));
      }
      for (int rank = 0; rank < size; rank++) {
        int self = rank;
        Thread _ = processes.get(rank).start("rank-" + rank, () -> runRank(self));
      }
      for (int rank = size; rank < ends.length; rank++) {
        int self = rank;
        long at = joiners.get(rank - size).toNanos();
        scheduler.startAt(at, () -> startLate(self));
      }
      scheduler.run(SimulatedProgram.LIMIT.toNanos());
      List<RankEnd> all = new ArrayList<>();
      for (RankEnd end : ends) {
        all.add(Objects.requireNonNull(end));
      }
      return new Outcome(all, scheduler.trace().count(), scheduler.trace().hash());
    }

    private void startLate(int rank) {
      if (ends[rank] == null) {
        Thread _ = processes.get(rank).start("rank-" + rank, () -> runRank(rank));
      }
    }

    private void runRank(int rank) {
      SimulatedProcess process = processes.get(rank);
      Throwable failure = null;
      try (ProcessGroup group = groupOf(rank, optionsOf(rank, process))) {
        body.run(group);
      } catch (ProcessGone e) {
        throw e;
      } catch (Throwable e) {
        failure = e;
      }
      server.dropWill(process);
      end(rank, false, failure);
    }

    private ProcessGroup groupOf(int rank, GroupOptions given) {
      return rank < size ? ProcessGroup.init(given) : ProcessGroup.join(given);
    }

    private GroupOptions optionsOf(int rank, SimulatedProcess process) {
      GroupOptions own =
          rank < size ? GroupOptions.DEFAULT.withRank(rank).withSize(size) : GroupOptions.DEFAULT;
      return options.apply(
          own.withStore(new SimulatedStore(server, process, timeout))
              .withTimeout(timeout)
              .withTime(process.time())
              .withProvider(new FaultyProvider(new ThreadedProvider(), faults.get(rank))));
    }

    private void end(int rank, boolean crashed, @Nullable Throwable failure) {
      if (ends[rank] == null) {
        ends[rank] = new RankEnd(rank, crashed, failure, Duration.ofNanos(scheduler.nowNanos()));
      }
    }

    private void begin(Fault fault) {
      SimulatedProcess process = processes.get(fault.rank());
      long until = scheduler.nowNanos() + fault.length().toNanos();
      switch (fault.kind()) {
        case CRASH -> crash(fault.rank(), process);
        case PAUSE -> process.pause(until);
        case CUT_OFF -> {
          process.cutOff(true);
          var _ = scheduler.at(until, scheduler.outside(), () -> process.cutOff(false));
        }
        case RESET -> SimulatedHost.of(process).resetConnections();
        case SEPARATE -> {
          separate(process, true);
          var _ = scheduler.at(until, scheduler.outside(), () -> separate(process, false));
        }
      }
    }

    private void separate(SimulatedProcess process, boolean isSeparate) {
      for (SimulatedProcess other : processes) {
        if (!other.equals(process)) {
          SimulatedHost.of(process).partition(SimulatedHost.of(other), isSeparate);
        }
      }
    }

    private void crash(int rank, SimulatedProcess process) {
      if (ends[rank] != null) {
        return;
      }
      end(rank, true, null);
      process.halt();
      long seen = scheduler.nowNanos() + random.nextLong(RESET_NANOS);
      var _ =
          scheduler.at(
              seen,
              scheduler.outside(),
              () ->
                  scheduler
                      .outside()
                      .start(
                          "crash-" + rank,
                          () -> {
                            for (int each = 0; each < ends.length; each++) {
                              faults.get(rank).kill(each);
                            }
                            process.crash();
                            SimulatedHost.of(process).closeAll();
                            server.died(process);
                          }));
    }
  }
}
