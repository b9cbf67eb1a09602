package dev.tutti.cuda.share;

import java.io.IOException;

/** A receiver of the notes that come over {@link RankLinks}. */
public interface NoteReceiver {
  /**
   * Takes a note; must not block.
   *
   * @param sender the rank that sent the note
   * @param kind the first number, not 0
   * @param a the second number
   * @param b the third number
   * @param c the fourth number
   */
  void take(int sender, long kind, long a, long b, long c);

  /**
   * Called when a rank has closed its links or its process is gone. All its notes have been
   * delivered by then.
   *
   * @param sender the rank
   */
  void ended(int sender);

  /**
   * Called when no more notes can be received or sent.
   *
   * @param cause the failure
   * @param peer the rank that no longer listens, or -1
   */
  void fail(IOException cause, int peer);
}
