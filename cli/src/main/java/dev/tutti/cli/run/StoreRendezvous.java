package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A rendezvous that lets the launchers of several nodes agree through the store that node 0 hosts.
 *
 * <p>Protocol, below a prefix of its own ({@link NodeKeys}): the nodes meet ({@link NodeMeeting}),
 * agree on how each attempt ended ({@link VerdictAgreement}), and leave ({@link NodeDeparture}).
 * Before the attempt that follows attempt A, each node waits for {@code A/stopped/R} of all nodes,
 * and then for {@code A/cleared} of node 0, which deletes what the ranks left.
 */
public final class StoreRendezvous implements LaunchRendezvous, Restarts {
  /** How long a launcher may give no sign of life. */
  static final Duration SILENCE = Duration.ofMinutes(1);

  /** The time between signs of life. */
  static final Duration WATCH_INTERVAL = Duration.ofSeconds(5);

  private final NodeKeys keys;
  private final Store shared;
  private final int port;
  private final Runnable clear;
  private final Runnable leave;
  private final NodeMeeting meeting;
  private final VerdictAgreement agreement;

  /**
   * Creates a rendezvous.
   *
   * @param plan the plan to launch, which also says which node this is
   * @param store the store shared by all nodes and their ranks; closed at the end
   * @param port the port at which ranks find the store
   * @param clear deletes what ranks left in the store; called on node 0 only
   * @param leave the action when all have left, or need not be waited for any longer
   */
  StoreRendezvous(LaunchPlan plan, Store store, int port, Runnable clear, Runnable leave) {
    this(plan, store, port, clear, leave, SILENCE, WATCH_INTERVAL);
  }

  StoreRendezvous(
      LaunchPlan plan,
      Store store,
      int port,
      Runnable clear,
      Runnable leave,
      Duration silence,
      Duration watchInterval) {
    this.keys = NodeKeys.of(plan, store);
    this.shared = store;
    this.port = port;
    this.clear = clear;
    this.leave = leave;
    this.meeting = new NodeMeeting(plan, keys, port, watchInterval);
    this.agreement = new VerdictAgreement(keys, silence, watchInterval);
  }

  @Override
  public int port() {
    return port;
  }

  @Override
  public RankRange join(Consumer<String> messages) {
    return meeting.join(messages);
  }

  @Override
  public void refuse(Verdict verdict) {
    // If all have met in the meantime, the others start their ranks and look there.
    propose(0, verdict);
    meeting.refuse(verdict);
  }

  @Override
  public void begin(int attempt, Consumer<Verdict> listener) {
    agreement.watch(attempt, listener);
  }

  @Override
  public void propose(int attempt, Verdict verdict) {
    agreement.propose(attempt, verdict);
  }

  @Override
  public RankLog ranks() {
    return new RankLog(shared::duplicate);
  }

  @Override
  public @Nullable Scaling watchScaling(Scaling.Listener requests) {
    Scaling.refuse(
        keys.store(),
        "this job has %d nodes, and tutti scale changes jobs of a single node; with --nnodes MIN:MAX,"
                .formatted(keys.nodes())
            + " nodes come and go");
    return null;
  }

  @Override
  public Optional<Verdict> awaitStopped(int attempt, Duration timeout) {
    try {
      keys.markOwn(stopped(attempt));
      keys.store().await(keys.ofAllNodes(stopped(attempt)), timeout);
      if (keys.node() == 0) {
        clear.run();
        keys.mark(cleared(attempt));
      }
      keys.store().await(List.of(cleared(attempt)), timeout);
      return agreement.known(attempt + 1);
    } catch (StoreException e) {
      throw new LaunchException(1, whoDidNotStop(attempt, timeout), e);
    }
  }

  private String whoDidNotStop(int attempt, Duration timeout) {
    try {
      List<Integer> missing = keys.nodesWithout(stopped(attempt));
      return missing.isEmpty()
          ? "node 0 did not permit a restart within " + Notice.inWords(timeout)
          : NodeKeys.named(missing) + " did not stop all ranks within " + Notice.inWords(timeout);
    } catch (StoreException e) {
      return "lost the store of node 0 while restarting all ranks";
    }
  }

  @Override
  public void withdraw(int attempt, Verdict verdict) {
    propose(attempt + 1, verdict);
    try {
      keys.markOwn(stopped(attempt));
      if (keys.node() == 0) {
        keys.mark(cleared(attempt));
      }
    } catch (StoreException e) {
      // The others notice by their own deadline.
    }
  }

  private static String stopped(int attempt) {
    return attempt + "/stopped/";
  }

  private static String cleared(int attempt) {
    return attempt + "/cleared";
  }

  @Override
  public void close() {
    agreement.close();
    try {
      NodeDeparture.leave(keys, meeting);
    } finally {
      keys.store().close();
      leave.run();
    }
  }
}
