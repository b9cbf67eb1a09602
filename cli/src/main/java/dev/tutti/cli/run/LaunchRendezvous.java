package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.spi.Printable;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A rendezvous that lets the launchers of all nodes agree on the ranks of each node and on how an
 * attempt ended.
 */
public interface LaunchRendezvous extends AutoCloseable {
  /** Returns the port of the store. */
  int port();

  /**
   * Meets the other nodes.
   *
   * @param messages receives, once, which nodes are missing, if they do not come soon
   * @throws dev.tutti.cli.process.LaunchException if a node does not come in time, comes twice,
   *     cannot continue, or was started for another number of nodes
   */
  RankRange join(Consumer<String> messages) throws InterruptedException;

  /**
   * Announces that this node does not take part, before it begins the first attempt.
   *
   * @param verdict the reason
   */
  void refuse(Verdict verdict);

  /**
   * Begins an attempt.
   *
   * @param attempt the number of the attempt, from 0
   * @param listener receives once, on any thread, how the attempt ended for all nodes
   */
  void begin(int attempt, Consumer<Verdict> listener);

  /**
   * Proposes how this node's part ended; the first failure of any node becomes the verdict, and
   * success only if all nodes propose it.
   *
   * @param attempt the number of the attempt
   * @param verdict the verdict of this node
   */
  void propose(int attempt, Verdict verdict);

  /** Returns the failure log of the ranks. */
  RankLog ranks();

  /**
   * Notes that a process of this node was started, so that others know which ones are lost with it.
   *
   * @param pid the process
   */
  default void started(long pid) {}

  /**
   * Waits, until the result is closed, for requests to run another number of ranks; null if such
   * requests are not served.
   */
  default @Nullable Scaling watchScaling(Scaling.Listener requests) {
    return null;
  }

  /** Leaves; the host waits a moment for the others to leave. */
  @Override
  void close();

  /**
   * How an attempt ended.
   *
   * @param kind success, a failed rank, a rank that would fail again, or an end requested by a
   *     signal
   * @param node the node that announced it first
   * @param rank the rank that failed first, or -1
   * @param code the exit code of the whole job
   * @param text what happened, in words
   */
  record Verdict(Kind kind, int node, int rank, int code, String text) {
    /** What ended an attempt. */
    enum Kind {
      /** All ranks ended with exit code 0. */
      SUCCESS,
      /** A rank failed. */
      FAILED,
      /** A rank failed, and would fail again. */
      REFUSED,
      /** A launcher received a signal, or lost the others. */
      STOPPED
    }

    /** Returns the verdict of a node that cannot continue with the others. */
    static Verdict stopped(int node, String text) {
      return new Verdict(Kind.STOPPED, node, -1, 1, text);
    }

    static Verdict decode(byte[] bytes) {
      String[] fields = new String(bytes, UTF_8).split("\n", 5);
      return new Verdict(
          Kind.valueOf(fields[0]),
          Integer.parseInt(fields[1]),
          Integer.parseInt(fields[2]),
          Integer.parseInt(fields[3]),
          Printable.lines(fields[4]));
    }

    /** Encodes the verdict with a field a line; the text is last and may have several lines. */
    byte[] encode() {
      return (kind + "\n" + node + "\n" + rank + "\n" + code + "\n" + text).getBytes(UTF_8);
    }
  }
}
