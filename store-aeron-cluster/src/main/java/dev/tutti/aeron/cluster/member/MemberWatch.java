package dev.tutti.aeron.cluster.member;

/**
 * A watch for a member that stands still although others are there: a leader that confirms nothing
 * while requests wait, or a member in an election that the others have ended without it. Nobody
 * else sees a reason to act, so it would stand still for good.
 */
public final class MemberWatch {
  private final long patienceNanos;
  private long position = -1;
  private long since;

  /**
   * Creates a watch.
   *
   * @param patienceNanos how long a member may stand still while it waits
   */
  public MemberWatch(long patienceNanos) {
    this.patienceNanos = patienceNanos;
  }

  /**
   * How far a member has come.
   *
   * @param committed the position in the log up to which the members agree
   * @param waiting whether it leads and requests or parts of the log wait for the members, or it is
   *     in a step of an election that only others can end
   */
  public record Progress(long committed, boolean waiting) {}

  /**
   * Takes what a member has come to; called often, always by the same thread.
   *
   * @param now the time in nanoseconds
   * @return whether it should start anew
   */
  public boolean isStuck(Progress progress, long now) {
    if (!progress.waiting() || progress.committed() != position) {
      position = progress.committed();
      since = now;
    }
    return now - since > patienceNanos;
  }
}
