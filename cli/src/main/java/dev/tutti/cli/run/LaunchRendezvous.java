package dev.tutti.cli.run;

import dev.tutti.runtime.failure.FailureLog.Blame;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;

/** Lets the launchers of all nodes agree on where they stand and how an attempt ended. */
public interface LaunchRendezvous extends AutoCloseable {
  /** Returns the port of the store. */
  int port();

  /**
   * Meets the other nodes.
   *
   * @param messages takes whom it waits for, once, if they do not come soon
   * @throws dev.tutti.cli.process.LaunchException if they do not come in time, or one comes twice,
   *     or cannot go on, or was started for another number of nodes
   */
  RankRange join(Consumer<String> messages) throws InterruptedException;

  /**
   * Says that this node does not take part, before it begins the first attempt.
   *
   * @param verdict why
   */
  void refuse(Verdict verdict);

  /**
   * Begins an attempt.
   *
   * @param attempt from 0
   * @param listener hears once, from any thread, how the attempt ended for all nodes
   */
  void begin(int attempt, Consumer<Verdict> listener);

  /**
   * Says how this node's part ended; the first failure of all nodes becomes the verdict, and
   * success only if all nodes say so.
   *
   * @param attempt which
   * @param verdict this node's
   */
  void propose(int attempt, Verdict verdict);

  /**
   * Tells whom the ranks of a failed attempt blame, as far as they told each other and the store
   * answers.
   *
   * @param attempt which
   */
  Optional<Blame> blame(int attempt);

  /**
   * Waits until all nodes stopped their ranks, and what these left in the store is deleted.
   *
   * @param attempt which
   * @param timeout longest wait
   * @return how the next attempt ended, if a node says so before it began
   * @throws dev.tutti.cli.process.LaunchException if a node does not stop in time, or the store is
   *     lost
   */
  Optional<Verdict> awaitStopped(int attempt, Duration timeout) throws InterruptedException;

  /**
   * Says that this node stopped its ranks and takes no part in the next attempt.
   *
   * @param attempt which one ended
   * @param verdict why
   */
  void withdraw(int attempt, Verdict verdict);

  /** Leaves; the host waits a moment for the others to have left. */
  @Override
  void close();

  /**
   * Tells how an attempt ended.
   *
   * @param kind success, a failed rank, one that would fail again, or an end asked for by a signal
   * @param node the node that said so first
   * @param rank the first failing rank, or -1
   * @param code exit code of the whole
   * @param text what happened, for people
   */
  record Verdict(Kind kind, int node, int rank, int code, String text) {
    /** Says what ended an attempt. */
    enum Kind {
      /** All ranks ended with exit code 0. */
      SUCCESS,
      /** A rank failed. */
      FAILED,
      /** A rank failed that would fail again. */
      REFUSED,
      /** A launcher got a signal, or lost the others. */
      STOPPED
    }
  }
}
