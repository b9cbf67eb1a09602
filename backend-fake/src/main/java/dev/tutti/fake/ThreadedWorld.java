package dev.tutti.fake;

import dev.tutti.GroupOptions;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * Runs code once for each rank of a group, on threads of this JVM, for tests: no processes, no
 * sockets.
 *
 * <p>Instances are immutable; each {@code with} method returns a modified copy. Each run creates a
 * new store, a new group and new platform threads named {@code rank-0}, {@code rank-1} and so on,
 * and none of them is left when the run returns.
 *
 * <p>The first rank whose body throws ends the run: the groups of all ranks are aborted at once,
 * and the run throws that very exception or error (a checked exception as the cause of a {@code
 * TuttiException}). If that exception names another rank as the first to fail, and that rank failed
 * by itself, the run throws the other rank's exception instead. Its suppressed exceptions are
 * {@link RankFailure}s: one that names its rank, and one for each other rank that failed.
 */
public final class ThreadedWorld {
  /** The deadline of a run for which none was given. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

  private final WorldOptions options;

  private ThreadedWorld(WorldOptions options) {
    this.options = options;
  }

  /**
   * Creates a world.
   *
   * @param size the number of ranks
   */
  public static ThreadedWorld of(int size) {
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, not " + size);
    }
    return new ThreadedWorld(new WorldOptions(size, DEFAULT_TIMEOUT, Time.SYSTEM));
  }

  /**
   * Runs a body once on each rank and waits for all ranks.
   *
   * @param size the number of ranks
   * @param body the code that each rank runs
   * @throws WorldTimeoutException if a rank does not end within {@link #DEFAULT_TIMEOUT}
   */
  public static void run(int size, RankBody body) {
    of(size).run(body);
  }

  /**
   * Computes something once on each rank and waits for all ranks.
   *
   * @param size the number of ranks
   * @param body the code that each rank runs to compute its result
   * @return the results, in rank order
   * @throws WorldTimeoutException if a rank does not end within {@link #DEFAULT_TIMEOUT}
   */
  public static <T> List<T> call(int size, RankCall<T> body) {
    return of(size).call(body);
  }

  /**
   * Sets the deadline of a run. It is also the deadline of operations that have none of their own,
   * unless the group options specify otherwise.
   *
   * @param newTimeout the time allowed from the start of the run
   */
  public ThreadedWorld withTimeout(Duration newTimeout) {
    if (newTimeout.isNegative() || newTimeout.isZero()) {
      throw new IllegalArgumentException("timeout must be positive, not " + newTimeout);
    }
    return with(copy -> copy.timeout = newTimeout);
  }

  /**
   * Uses another backend.
   *
   * @param newProvider creates the backend of each rank
   */
  public ThreadedWorld withProvider(BackendProvider newProvider) {
    return with(copy -> copy.provider = Objects.requireNonNull(newProvider));
  }

  /**
   * Uses another backend, given by name.
   *
   * @param name the name of a provider on the class path
   * @throws IllegalArgumentException if there is no such provider; the message names the known ones
   */
  public ThreadedWorld withBackend(String name) {
    Set<String> known = new TreeSet<>();
    for (BackendProvider each : ServiceLoader.load(BackendProvider.class)) {
      if (each.name().equals(name)) {
        return withProvider(each);
      }
      known.add(each.name());
    }
    throw new IllegalArgumentException("no backend '" + name + "'; the backends are " + known);
  }

  /**
   * Inserts faults between the groups and their backends. A rank that the faults kill may let the
   * exceptions of its operations escape: this ends its body but not the run, and its result is
   * null.
   *
   * @param newFaults the faults, which may be changed while the world runs
   */
  public ThreadedWorld withFaults(Faults newFaults) {
    return with(copy -> copy.faults = newFaults);
  }

  /**
   * Records the calls of all ranks, before faults affect them.
   *
   * @param newRecorder records the calls
   */
  public ThreadedWorld withRecorder(CallRecorder newRecorder) {
    return with(copy -> copy.recorder = newRecorder);
  }

  /**
   * Changes the options with which each rank joins. The store, rank, size, timeout and backend are
   * already set.
   *
   * @param change returns the modified options; called by each rank's thread
   */
  public ThreadedWorld withOptions(UnaryOperator<GroupOptions> change) {
    UnaryOperator<GroupOptions> earlier = options.options;
    return with(copy -> copy.options = given -> change.apply(earlier.apply(given)));
  }

  /**
   * Starts the ranks' threads in a thread group, which also contains the threads that they start.
   *
   * @param newThreads the thread group; by default the group of the thread that runs the world
   */
  public ThreadedWorld withThreads(ThreadGroup newThreads) {
    return with(copy -> copy.threads = newThreads);
  }

  /**
   * Sets the clock and waits of the run and of the groups.
   *
   * @param newTime the time, by default that of this machine
   */
  public ThreadedWorld withTime(Time newTime) {
    return with(copy -> copy.time = newTime);
  }

  private ThreadedWorld with(Consumer<WorldOptions> change) {
    WorldOptions copy = options.copy();
    change.accept(copy);
    return new ThreadedWorld(copy);
  }

  /** Returns the number of ranks. */
  public int size() {
    return options.size;
  }

  /**
   * Runs a body once on each rank and waits for all ranks.
   *
   * @param body the code that each rank runs
   * @throws WorldTimeoutException if a rank does not end in time; it contains the stacks of all
   *     ranks
   */
  public void run(RankBody body) {
    WorldRun<Boolean> run =
        new WorldRun<>(
            options,
            group -> {
              body.run(group);
              return true;
            });
    run.results();
  }

  /**
   * Computes something once on each rank and waits for all ranks.
   *
   * @param body the code that each rank runs to compute its result
   * @return the results, in rank order
   * @throws WorldTimeoutException if a rank does not end in time; it contains the stacks of all
   *     ranks
   */
  public <T> List<T> call(RankCall<T> body) {
    return new WorldRun<>(options, body).results();
  }
}
