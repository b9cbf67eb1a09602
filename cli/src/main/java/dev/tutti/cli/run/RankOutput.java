package dev.tutti.cli.run;

import java.util.List;

/** Receives what ranks print; called from several threads at once. */
public interface RankOutput {
  /** Says which of a rank's two outputs a line is from. */
  enum Channel {
    /** Standard output. */
    OUT,
    /** Standard error. */
    ERR
  }

  /**
   * Takes lines that belong together, such as those of a stack trace.
   *
   * @param rank who printed them
   * @param channel where
   * @param lines their bytes, without line ends; not to be changed
   */
  void lines(int rank, Channel channel, List<byte[]> lines);
}
