package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The rendezvous of the only node of a job, which hosts the store and agrees only with itself. */
final class SingleNode implements LaunchRendezvous, Restarts {
  private final RankRange ranks;
  private final AutoCloseable store;
  private final Runnable clear;
  private final Supplier<Store> connect;
  private @Nullable Consumer<Verdict> listener;

  /**
   * Creates the rendezvous of one node.
   *
   * @param ranks the position of the node's ranks
   * @param store the hosted store, closed at the end
   * @param clear deletes what the ranks left in the store
   * @param connect opens the store for a call
   */
  SingleNode(RankRange ranks, AutoCloseable store, Runnable clear, Supplier<Store> connect) {
    this.ranks = ranks;
    this.store = store;
    this.clear = clear;
    this.connect = connect;
  }

  @Override
  public int port() {
    return ranks.masterPort();
  }

  @Override
  public RankRange join(Consumer<String> messages) {
    return ranks;
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
  public RankLog ranks() {
    return new RankLog(connect);
  }

  @Override
  public Optional<Verdict> awaitStopped(int attempt, Duration timeout) {
    try {
      clear.run();
      return Optional.empty();
    } catch (StoreException e) {
      throw new LaunchException(1, "cannot clear the store: " + e.getMessage(), e);
    }
  }

  @Override
  public Scaling watchScaling(Scaling.Listener requests) {
    return Scaling.watch(connect.get(), requests);
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
      throw new LaunchException(1, "cannot close the store: " + e.getMessage(), e);
    }
  }
}
