package dev.tutti.cli;

import dev.tutti.StoreException;
import dev.tutti.cli.Agreement.Verdict;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Agrees with itself: the only node of a job, which hosts the store. */
final class SingleNode implements Agreement {
  private final Cohort cohort;
  private final AutoCloseable store;
  private final Runnable clear;
  private @Nullable Consumer<Verdict> listener;

  /**
   * Creates the agreement of one node.
   *
   * @param cohort where its ranks stand
   * @param store the hosted store, closed at the end
   * @param clear deletes what ranks left in it
   */
  SingleNode(Cohort cohort, AutoCloseable store, Runnable clear) {
    this.cohort = cohort;
    this.store = store;
    this.clear = clear;
  }

  @Override
  public int port() {
    return cohort.masterPort();
  }

  @Override
  public Cohort join(Consumer<String> messages) {
    return cohort;
  }

  @Override
  public void refuse(Verdict verdict) {
    // Nobody else waits.
  }

  @Override
  public void begin(int attempt, Consumer<Verdict> verdictListener) {
    listener = verdictListener;
  }

  @Override
  public void propose(int attempt, Verdict verdict) {
    Consumer<Verdict> current = listener;
    if (current != null) {
      listener = null;
      current.accept(verdict);
    }
  }

  @Override
  public Optional<Verdict> awaitStopped(int attempt, Duration timeout) {
    try {
      clear.run();
      return Optional.empty();
    } catch (StoreException e) {
      throw new LaunchException(1, "the store cannot be cleared: " + e.getMessage(), e);
    }
  }

  @Override
  public void withdraw(int attempt, Verdict verdict) {
    // Nobody else waits.
  }

  @Override
  public void close() {
    try {
      store.close();
    } catch (Exception e) {
      throw new LaunchException(1, "the store cannot be closed: " + e.getMessage(), e);
    }
  }
}
