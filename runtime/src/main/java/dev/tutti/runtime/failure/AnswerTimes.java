package dev.tutti.runtime.failure;

import dev.tutti.Settings;
import dev.tutti.runtime.operation.Deadlines;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.time.Duration;

/**
 * How long a rank waits for what other ranks and the store answer while it finds out why something
 * failed. All these times follow from one setting.
 *
 * @param answer how long one answer of another rank or of the store may take
 */
public record AnswerTimes(Duration answer) {
  /*
   * A failing group is settled within answer + answers: the first of them is for the store to take a
   * report, the second for the ranks to answer, half of it to the reporter and, if that is silent, a
   * quarter to each other rank. Before that, in set-up, the reason of a peer is awaited for an
   * answer. Only calls that do not match take longer, by call. verdict is longer than all of these,
   * and a report of a slow operation waits for longer still.
   */

  /** Cuts off what is too long to be added to a time. */
  public AnswerTimes {
    answer = Deadlines.cut(answer);
  }

  /** Returns the times that follow from the settings of a rank. */
  public static AnswerTimes of(Settings settings) {
    return new AnswerTimes(settings.get(RuntimeSettings.ANSWER_TIMEOUT));
  }

  /** Returns a multiple; those of durations load classes for big numbers, which takes long. */
  private Duration times(double factor) {
    return Duration.ofNanos(Math.round(answer.toNanos() * factor));
  }

  /** Returns how long a rank that is behind may take to reach the call that does not match. */
  public Duration call() {
    return times(0.8);
  }

  /** Returns how long this rank waits for the finding of the rank that reported a failure. */
  public Duration finding() {
    return times(1.25);
  }

  /** Returns how long this rank waits for answers after a wait that brought no finding. */
  public Duration lateAnswer() {
    return times(0.25);
  }

  /** Returns how long the ranks may take to settle a failure that is in the log. */
  public Duration answers() {
    return times(2);
  }

  /**
   * Returns how late a thread of this rank must be for the rank to count as having stood still: the
   * others may have judged without its answer.
   */
  public Duration standstill() {
    return answer;
  }

  /** Returns after what time a thread that waits for a verdict decides by itself. */
  public Duration verdict() {
    return times(5);
  }

  /** Returns how long the question of what keeps a slow operation may take in all. */
  public Duration question() {
    return times(6);
  }
}
