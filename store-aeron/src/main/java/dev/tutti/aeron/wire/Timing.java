package dev.tutti.aeron.wire;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * The times of the driver and its clients, all derived from one lease.
 *
 * <p>A dead peer is detected by the control connection, within the lease. The times here only free
 * what the dead left behind, so they are long: a process in a garbage collection pause must not
 * look dead.
 *
 * @param leaseNanos how long the loss of a host may go unnoticed
 */
public record Timing(long leaseNanos) {
  public static final Duration DEFAULT_LEASE = Duration.ofSeconds(5);

  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final int PAUSE_LEASES = 6;

  /** The shortest lease, since the kernel counts its probes in seconds. */
  static final Duration SHORTEST_LEASE = Duration.ofSeconds(3);

  /*
   * A probe fails if it or its answer is lost. On a network that loses one packet in a hundred, two
   * in a row fail once in 2500 times, which is far too often for a job of many hours; four in a row
   * fail once in 6 million times.
   */
  private static final int MOST_PROBES = 4;

  public static Timing of(Duration lease) {
    if (lease.compareTo(SHORTEST_LEASE) < 0 || lease.compareTo(Duration.ofHours(1)) > 0) {
      throw new IllegalArgumentException(
          "the lease must be 3 s to 1 h, not " + lease.toMillis() + " ms");
    }
    return new Timing(lease.toNanos());
  }

  /** Returns the time without a sign of life after which the driver frees what a process held. */
  public long livenessNanos() {
    return Math.max(LONGEST_PAUSE_NANOS, PAUSE_LEASES * leaseNanos);
  }

  /** Returns the time after which the driver ends a message that a dead process began. */
  public long unblockNanos() {
    // Aeron refuses to start unless this is longer than its clients' liveness.
    return livenessNanos() + livenessNanos() / 2;
  }

  /**
   * Returns the time without a sign of the leader after which the members of a cluster elect
   * another.
   */
  public long leaderNanos() {
    return leaseNanos * 3 / 5;
  }

  /** Returns how long the members of a cluster wait for votes. */
  public long electionNanos() {
    return leaseNanos / 5;
  }

  /**
   * Returns the time within which the members of a cluster have detected the loss of the leader and
   * elected another.
   */
  public long electedNanos() {
    return leaderNanos() + 3 * electionNanos();
  }

  /** Returns how long a member may stand still while it waits for others, before it starts anew. */
  public long stuckNanos() {
    return leaseNanos * 2;
  }

  /** Returns how long a starting member waits for all others before a majority is enough. */
  public long gatherNanos() {
    return leaseNanos * 2;
  }

  /** Returns the time without an answer after which a client gives up on a cluster. */
  public long lostNanos() {
    return leaseNanos * 4;
  }

  /** Returns the time without an answer after which a client of a cluster requests one. */
  public long askNanos() {
    return leaseNanos / 2;
  }

  /**
   * Returns the time without a sign of life after which a client of a cluster is considered lost.
   */
  public long silenceNanos() {
    return leaseNanos * 3;
  }

  /**
   * Returns the number of quiet seconds after which the kernel probes whether the other host is
   * there.
   */
  public int quietSeconds() {
    return leaseSeconds() - probes() * probeSeconds();
  }

  /** Returns the number of seconds that the kernel waits for an answer. */
  public int probeSeconds() {
    return Math.max(1, leaseSeconds() / (MOST_PROBES + 1));
  }

  /**
   * Returns the number of probes in a row without an answer after which the other host is
   * considered lost.
   */
  public int probes() {
    return Math.min(MOST_PROBES, leaseSeconds() - 1);
  }

  private int leaseSeconds() {
    return (int) TimeUnit.NANOSECONDS.toSeconds(leaseNanos);
  }
}
