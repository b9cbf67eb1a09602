package dev.tutti.kernels;

/**
 * Reads the status word that a kernel leaves in pinned host memory when a wait ends without its
 * peer. A channel with a status other than OK is out of step: later kernels on it return without
 * results, and it can only be dropped.
 *
 * @param outcome what ended the wait
 * @param peer the rank that was waited for; of signals: 0
 * @param lane the block that waited; of signals: the channel
 */
public record ChannelStatus(Outcome outcome, int peer, int lane) {
  /** Names what can end a wait. */
  public enum Outcome {
    /** Nothing did. */
    OK,
    /** The deadline of the call. */
    TIMED_OUT,
    /** The abort word. */
    ABORTED
  }

  /**
   * Decodes the word.
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
