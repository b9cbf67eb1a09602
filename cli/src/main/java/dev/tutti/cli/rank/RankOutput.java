package dev.tutti.cli.rank;

import java.util.List;

/** The receiver of what ranks print; called from several threads concurrently. */
public interface RankOutput {
  /** The output of a rank from which a line comes. */
  enum Channel {
    /** Standard output. */
    OUT,
    /** Standard error. */
    ERR
  }

  /**
   * Takes lines that belong together, such as those of a stack trace.
   *
   * @param rank the rank that printed the lines
   * @param channel the output from which they come
   * @param lines the bytes of the lines, without line ends; must not be changed
   */
  void lines(int rank, Channel channel, List<byte[]> lines);

  /**
   * Returns whether this output takes pieces of lines whose ends do not come soon. Otherwise it
   * gets such a line as a whole once it has ended.
   */
  default boolean takesPieces() {
    return false;
  }

  /**
   * Takes a piece of a line.
   *
   * @param rank the rank that printed the line
   * @param channel the output from which it comes
   * @param bytes the bytes, without line ends; must not be changed
   * @param isLast whether the line ends after them
   */
  default void piece(int rank, Channel channel, byte[] bytes, boolean isLast) {}

  /** Ends a line of which pieces are shown, since a message of the launcher follows. */
  default void endLine() {}

  /** Returns whether the reader of this output is gone for good. */
  default boolean isUnread() {
    return false;
  }
}
