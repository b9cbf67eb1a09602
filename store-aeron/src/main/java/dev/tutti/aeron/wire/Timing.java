package dev.tutti.aeron.wire;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Derives all times of the driver and its clients from one lease.
 *
 * <p>A dead peer is found by the control connection, within the lease. What is here only frees what
 * the dead left, so it is long: a pause of a process for garbage collection must not look like
 * death.
 *
 * @param leaseNanos how long a lost host may go unnoticed
 */
public record Timing(long leaseNanos) {
  public static final Duration DEFAULT_LEASE = Duration.ofSeconds(5);

  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final int PAUSE_LEASES = 6;

  /** The shortest lease: the kernel counts its probes in seconds. */
  static final Duration SHORTEST_LEASE = Duration.ofSeconds(3);

  private static final int PROBES = 2;

  public static Timing of(Duration lease) {
    if (lease.compareTo(SHORTEST_LEASE) < 0 || lease.compareTo(Duration.ofHours(1)) > 0) {
      throw new IllegalArgumentException(
          "the lease must be 3 s to 1 h, not " + lease.toMillis() + " ms");
    }
    return new Timing(lease.toNanos());
  }

  /** Returns after how long without a sign of life the driver frees what a process held. */
  public long livenessNanos() {
    return Math.max(LONGEST_PAUSE_NANOS, PAUSE_LEASES * leaseNanos);
  }

  /** Returns after how long the driver ends a message that a dead process began. */
  public long unblockNanos() {
    // Aeron refuses to start unless this is longer than its clients' liveness.
    return livenessNanos() + livenessNanos() / 2;
  }

  /** Returns after how long without a sign of the leader the members of a cluster elect another. */
  public long leaderNanos() {
    return leaseNanos * 3 / 5;
  }

  /** Returns how long the members of a cluster wait for votes. */
  public long electionNanos() {
    return leaseNanos / 5;
  }

  /**
   * Returns within which the members of a cluster have found that the leader is lost, and elected.
   */
  public long electedNanos() {
    return leaderNanos() + 3 * electionNanos();
  }

  /** Returns how long a member that starts waits for all others before most of them are enough. */
  public long gatherNanos() {
    return leaseNanos * 2;
  }

  /** Returns after how long without an answer a client of a cluster gives it up. */
  public long lostNanos() {
    return leaseNanos * 4;
  }

  /** Returns after how long without an answer a client of a cluster asks for one. */
  public long askNanos() {
    return leaseNanos / 2;
  }

  /** Returns after how long without a sign of life a client of a cluster is lost. */
  public long silenceNanos() {
    return leaseNanos * 3;
  }

  /** Returns after how many quiet seconds the kernel asks whether the other host is there. */
  public int quietSeconds() {
    return (int) TimeUnit.NANOSECONDS.toSeconds(leaseNanos) - PROBES * probeSeconds();
  }

  /** Returns how many seconds the kernel gives an answer. */
  public int probeSeconds() {
    return (int) Math.max(1, TimeUnit.NANOSECONDS.toSeconds(leaseNanos) / 4);
  }

  /** Returns how many answers may be missing. */
  public int probes() {
    return PROBES;
  }
}
