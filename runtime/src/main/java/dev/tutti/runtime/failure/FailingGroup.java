package dev.tutti.runtime.failure;

import dev.tutti.TuttiException;
import dev.tutti.runtime.operation.RankProgress;
import org.jspecify.annotations.Nullable;

/** The parts of a failing group that the handling of its failure needs. */
public interface FailingGroup {
  /** Returns whether the group is closed, so that no failure needs to be reported any more. */
  boolean isGone();

  /** Returns where this rank stands; on any thread, and never blocks. */
  RankProgress standing();

  /**
   * Returns where this rank stands, for the ranks that judge a failure; may take as long as an
   * answer.
   */
  RankProgress answer(FailureEvent event);

  /** Ends everything once the failure is settled, on a thread of its own; never blocks. */
  void tearDown(TuttiException cause);

  /** Returns what writes the record of the failure afterwards; null if nobody wants it. */
  @Nullable Runnable recorder();
}
