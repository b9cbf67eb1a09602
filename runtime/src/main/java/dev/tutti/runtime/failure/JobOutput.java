package dev.tutti.runtime.failure;

import dev.tutti.runtime.status.Inquiry;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** What follows from a {@link JobInput}, in this order. */
sealed interface JobOutput {
  /** Append an entry to the log, at a place that was free as far as is known. */
  record Append(long number, LogEntry entry) implements JobOutput {}

  /** Begin no more operations in a group, and end its set-up. */
  record Fail(FailureEvent event) implements JobOutput {}

  /**
   * Publish where this rank stands, collect what the other ranks publish, or both.
   *
   * @param known what is known so far
   * @param publishes whether this rank has yet to publish
   * @param limit how long to wait for the others; null to collect nothing
   */
  record Ask(Evidence known, boolean publishes, @Nullable Duration limit) implements JobOutput {}

  /** Find out whether the store answers, while a reason is awaited for the end of a peer. */
  record Probe(String group) implements JobOutput {}

  /** Look whether a lost rank closed its group before. */
  record LookUp(Evidence known) implements JobOutput {}

  /** End all that is pending in a group, with a verdict. */
  record Settle(Evidence evidence, AgreedFailure verdict) implements JobOutput {}

  /** Publish where this rank stands, because an operation of another one waits for long. */
  record Answer(long number, String group) implements JobOutput {}

  /**
   * Collect what the ranks answer to a question of this rank.
   *
   * @param number the place of the question in the log
   * @param known what is known so far
   */
  record Find(Question question, long number, Evidence known) implements JobOutput {}

  /** Wait for the finding of the rank that asked the same question first. */
  record Adopt(Question question, long number) implements JobOutput {}

  /** Send what this rank found to the ranks that asked the same question. */
  record Tell(long number, String finding) implements JobOutput {}

  /** Say what keeps an operation of this rank. */
  record Explain(Question question, String finding) implements JobOutput {}

  /** Answer somebody outside the job. */
  record Report(Inquiry inquiry) implements JobOutput {}
}
