package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.RankProgress;

/** A group that a rank is in, or sets up, as the monitor of its job sees it. */
interface MonitoredGroup {
  /** Begins nothing more, since the group has failed; on any thread, and never blocks. */
  void failing(FailureEvent event);

  /** Returns where this rank stands; on any thread, and never blocks. */
  RankProgress standing();

  /**
   * Returns where this rank stands, for the ranks that judge a failure; on a thread of its own,
   * where it may take as long as an answer.
   */
  RankProgress answer(FailureEvent event);

  /** Ends what is pending with a verdict; on any thread, and never blocks. */
  void settle(Evidence evidence, AgreedFailure verdict);
}
