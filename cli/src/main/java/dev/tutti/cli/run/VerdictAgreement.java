package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The agreement of the nodes on how each attempt ended.
 *
 * <p>In attempt A, the key {@code A/verdict} is written once, by the first node with a failure, or
 * by the node that finishes last if none has failed; nodes that have finished set {@code
 * A/succeeded/R}. Each node waits for the verdict on its own handle and thread, which meanwhile
 * shows that the node is alive and looks for launchers that are not ({@link Heartbeat}). Such a
 * silence is also a verdict, and so is a store that does not answer for as long. That thread also
 * writes later what a node could not write.
 */
final class VerdictAgreement {
  private final NodeKeys keys;
  private final Duration silence;
  private final Duration watchInterval;

  /** The proposal of this node that the store may not have yet. */
  private final AtomicReference<@Nullable Proposal> unsaid = new AtomicReference<>();

  private volatile boolean closed;

  private record Proposal(int attempt, Verdict verdict) {}

  /**
   * Creates an agreement.
   *
   * @param keys the keys of the launchers
   * @param silence how long a launcher may give no sign of life
   * @param watchInterval how long one wait for a verdict takes, which is also the time between
   *     signs of life
   */
  VerdictAgreement(NodeKeys keys, Duration silence, Duration watchInterval) {
    this.keys = keys;
    this.silence = silence;
    this.watchInterval = watchInterval;
  }

  /** Proposes a verdict, now if the store answers, otherwise from the thread that watches. */
  void propose(int attempt, Verdict verdict) {
    Proposal proposal = new Proposal(attempt, verdict);
    unsaid.set(proposal);
    try {
      say(keys, proposal);
    } catch (StoreException e) {
      // The watcher proposes it again, or finds the store lost, which is then the verdict.
    }
  }

  private void say(NodeKeys handle, Proposal proposal) {
    boolean decided = true;
    if (proposal.verdict.kind() == Kind.SUCCESS) {
      String succeeded = proposal.attempt + "/succeeded/";
      handle.markOwn(succeeded);
      decided = handle.areSetByAll(succeeded);
    }
    if (decided) {
      var _ = handle.write(key(proposal.attempt), proposal.verdict.encode());
    }
    unsaid.compareAndSet(proposal, null);
  }

  private void sayAgain(NodeKeys handle, int attempt) {
    Proposal proposal = unsaid.get();
    if (proposal != null && proposal.attempt == attempt) {
      say(handle, proposal);
    }
  }

  /**
   * Starts the thread that waits for an attempt's verdict.
   *
   * @param attempt the number of the attempt
   * @param listener receives the verdict on that thread
   */
  void watch(int attempt, Consumer<Verdict> listener) {
    NodeKeys handle = keys.duplicate();
    var _ =
        Thread.ofPlatform()
            .daemon()
            .name("tutti-verdict-" + attempt)
            .start(
                () -> {
                  try (Store _ = handle.store()) {
                    listener.accept(await(handle, attempt));
                  }
                });
  }

  private Verdict await(NodeKeys handle, int attempt) {
    Heartbeat pulse = new Heartbeat(handle.store(), "" + keys.node(), silence, Time.SYSTEM);
    List<String> names = keys.ofAllNodes("");
    long answeredAt = System.nanoTime();
    try {
      while (true) {
        try {
          Optional<String> silent = pulse.beat(names);
          answeredAt = System.nanoTime();
          sayAgain(handle, attempt);
          if (silent.isPresent()) {
            proposeToStop(attempt, silent.get());
          }
        } catch (StoreTimeoutException e) {
          if (closed || System.nanoTime() - answeredAt > silence.toNanos()) {
            throw e;
          }
          continue;
        }
        try {
          return Verdict.decode(handle.store().get(key(attempt), watchInterval));
        } catch (StoreTimeoutException e) {
          // There is no verdict yet. The code above shows whether the store answers, even after a
          // long pause of this process.
          if (closed) {
            throw e;
          }
        }
      }
    } catch (StoreException e) {
      return Verdict.stopped(keys.node(), "lost the store of node 0: " + e.getMessage());
    }
  }

  private void proposeToStop(int attempt, String silent) {
    String text =
        "the launcher of node %s has sent no heartbeat for %d s"
            .formatted(silent, silence.toSeconds());
    propose(attempt, Verdict.stopped(keys.node(), text));
  }

  /** Returns the verdict on an attempt if there is one already. */
  Optional<Verdict> known(int attempt) {
    String key = key(attempt);
    return keys.store().check(List.of(key))
        ? Optional.of(Verdict.decode(keys.store().get(key)))
        : Optional.empty();
  }

  /** Lets the thread that watches end when the store next gives no answer in time. */
  void close() {
    closed = true;
  }

  private static String key(int attempt) {
    return attempt + "/verdict";
  }
}
