package dev.tutti.kernels;

/**
 * The status word that a kernel leaves in pinned host memory when a wait ends without its peer. A
 * channel with a status other than OK is out of step: later kernels on it return without results,
 * and it can only be discarded.
 *
 * @param outcome the event that ended the wait
 * @param peer the rank that was waited for; 0 for signals
 * @param lane the block that waited; the channel for signals
 */
public record ChannelStatus(Outcome outcome, int peer, int lane) {
  /** The events that can end a wait. */
  public enum Outcome {
    /** No such event has occurred. */
    OK,
    /** The deadline of the call passed. */
    TIMED_OUT,
    /** The abort word was set. */
    ABORTED
  }

  /**
   * Decodes a status word.
   *
   * @param word the second control word
   */
  public static ChannelStatus of(int word) {
    Outcome outcome =
        switch (word & 0xff) {
          case 0 -> Outcome.OK;
          case 2 -> Outcome.TIMED_OUT;
          case 3 -> Outcome.ABORTED;
          default -> throw new IllegalArgumentException("no kernel writes status " + (word & 0xff));
        };
    return new ChannelStatus(outcome, word >>> 8 & 0xff, word >>> 16);
  }
}
