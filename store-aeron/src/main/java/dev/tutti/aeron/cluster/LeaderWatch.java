package dev.tutti.aeron.cluster;

/**
 * A watch for a leader that confirms nothing although requests wait, while its followers are there:
 * the members then see no reason to elect another, and the cluster would stand still for good.
 */
public final class LeaderWatch {
  private final long patienceNanos;
  private long position = -1;
  private long since;

  /**
   * Creates a watch.
   *
   * @param patienceNanos how long a leader may confirm nothing while requests wait
   */
  public LeaderWatch(long patienceNanos) {
    this.patienceNanos = patienceNanos;
  }

  /**
   * How far a member has come.
   *
   * @param leads whether it is the leader, and no election is in progress
   * @param committed the position in the log up to which the members agree
   * @param waiting whether requests wait for the log, or a part of the log for the members
   */
  public record Progress(boolean leads, long committed, boolean waiting) {}

  /**
   * Takes what a member has come to; called often, always by the same thread.
   *
   * @param now the time in nanoseconds
   * @return whether it should step down
   */
  public boolean isStuck(Progress progress, long now) {
    if (!progress.leads() || !progress.waiting() || progress.committed() != position) {
      position = progress.committed();
      since = now;
    }
    return now - since > patienceNanos;
  }
}
