package dev.tutti.cli;

/** Receives what ranks print, line by line; called from several threads at once. */
interface RankOutput {
  /** Says which of a rank's two outputs a line is from. */
  enum Channel {
    /** Standard output. */
    OUT,
    /** Standard error. */
    ERR
  }

  /**
   * Takes a line.
   *
   * @param rank who printed it
   * @param channel where
   * @param line its bytes, without the line end; not to be changed
   */
  void line(int rank, Channel channel, byte[] line);
}
