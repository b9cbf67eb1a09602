package dev.tutti.fake;

import dev.tutti.GroupOptions;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Runs code once for each rank of a group, on threads of this JVM, for tests: no processes, no
 * sockets.
 *
 * <p>Immutable; each {@code with} method returns a changed copy. Each run makes a new store, a new
 * group and new platform threads named {@code rank-0}, {@code rank-1} and so on, and none of them
 * is left when it returns.
 *
 * <p>The first rank whose body throws ends the run: the groups of all ranks are aborted at once,
 * and the run throws the very exception or error of that rank (a checked one as the cause of a
 * {@code TuttiException}). Its suppressed exceptions are {@link RankFailure}s: one that tells its
 * rank, and one for each other rank that failed.
 */
public final class ThreadedWorld {
  /** Is the deadline of a run that was given none. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);

  private final int size;
  private final Duration timeout;
  private final UnaryOperator<GroupOptions> options;
  private final @Nullable BackendProvider provider;
  private final @Nullable ThreadGroup threads;

  private ThreadedWorld(
      int size,
      Duration timeout,
      UnaryOperator<GroupOptions> options,
      @Nullable BackendProvider provider,
      @Nullable ThreadGroup threads) {
    if (size < 1) {
      throw new IllegalArgumentException("size must be at least 1, not " + size);
    }
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    this.size = size;
    this.timeout = timeout;
    this.options = options;
    this.provider = provider;
    this.threads = threads;
  }

  /**
   * Describes a world.
   *
   * @param size number of ranks
   */
  public static ThreadedWorld of(int size) {
    return new ThreadedWorld(
        size, DEFAULT_TIMEOUT, UnaryOperator.identity(), new ThreadedProvider(), null);
  }

  /**
   * Runs a body once for each rank and waits for all.
   *
   * @param size number of ranks
   * @param body what each rank does
   * @throws WorldTimeoutException if a rank does not end within {@link #DEFAULT_TIMEOUT}
   */
  public static void run(int size, RankBody body) {
    of(size).run(body);
  }

  /**
   * Computes something once for each rank and waits for all.
   *
   * @param size number of ranks
   * @param body what each rank computes
   * @return the results in order of rank
   * @throws WorldTimeoutException if a rank does not end within {@link #DEFAULT_TIMEOUT}
   */
  public static <T> List<T> call(int size, RankCall<T> body) {
    return of(size).call(body);
  }

  /**
   * Sets the deadline of a run. Operations that are given none have the same, unless the group
   * options say otherwise.
   *
   * @param newTimeout from the start of the run
   */
  public ThreadedWorld withTimeout(Duration newTimeout) {
    return new ThreadedWorld(size, newTimeout, options, provider, threads);
  }

  /**
   * Uses another backend.
   *
   * @param newProvider makes the backend of each rank
   */
  public ThreadedWorld withProvider(BackendProvider newProvider) {
    return new ThreadedWorld(size, timeout, options, Objects.requireNonNull(newProvider), threads);
  }

  /**
   * Uses another backend, by name.
   *
   * @param name the name, or names by device type
   */
  public ThreadedWorld withBackend(String name) {
    return new ThreadedWorld(
        size, timeout, given -> options.apply(given).withBackend(name), null, threads);
  }

  /**
   * Changes the options with which each rank joins. Store, rank, size, timeout and backend are set
   * already.
   *
   * @param change returns the changed options; called by the thread of each rank
   */
  public ThreadedWorld withOptions(UnaryOperator<GroupOptions> change) {
    return new ThreadedWorld(
        size, timeout, given -> change.apply(options.apply(given)), provider, threads);
  }

  /**
   * Starts the threads of the ranks in a thread group, where the threads that they start go too.
   *
   * @param newThreads holds the threads; by default the group of the thread that runs the world
   */
  public ThreadedWorld withThreads(ThreadGroup newThreads) {
    return new ThreadedWorld(size, timeout, options, provider, newThreads);
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  /**
   * Runs a body once for each rank and waits for all.
   *
   * @param body what each rank does
   * @throws WorldTimeoutException if a rank does not end in time, with the stacks of all ranks
   */
  public void run(RankBody body) {
    WorldRun<Boolean> run =
        new WorldRun<>(
            this,
            group -> {
              body.run(group);
              return true;
            });
    run.results();
  }

  /**
   * Computes something once for each rank and waits for all.
   *
   * @param body what each rank computes
   * @return the results in order of rank
   * @throws WorldTimeoutException if a rank does not end in time, with the stacks of all ranks
   */
  public <T> List<T> call(RankCall<T> body) {
    return new WorldRun<>(this, body).results();
  }

  Duration timeout() {
    return timeout;
  }

  ThreadGroup threads() {
    return threads == null ? Thread.currentThread().getThreadGroup() : threads;
  }

  GroupOptions complete(GroupOptions given) {
    GroupOptions withTimeout = given.withTimeout(timeout);
    return options.apply(provider == null ? withTimeout : withTimeout.withProvider(provider));
  }
}
