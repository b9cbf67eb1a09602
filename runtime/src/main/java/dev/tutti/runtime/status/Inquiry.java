package dev.tutti.runtime.status;

import java.nio.charset.StandardCharsets;

/**
 * Somebody outside the job asks all ranks where they stand, as an entry in the log of failures.
 *
 * @param id of who asks; no two are the same
 * @param once whether there is one round; else more may follow
 */
public record Inquiry(String id, boolean once) {
  /*
   * Round N begins when the key "status/ID/ask/N" is there; rank R answers as "status/ID/N/R". The key of
   * the first round is there before the entry in the log, and goes with who asked, so a rank that reads
   * the log later answers nobody. A rank waits for the next round for LEASE, and then forgets who asked.
   */

  /** Begins an inquiry in the log, and nothing else there. */
  private static final char MARK = 2;

  /** Tells whether an entry of the log is an inquiry. */
  public static boolean isInquiry(byte[] bytes) {
    return bytes.length > 0 && bytes[0] == MARK;
  }

  /** Writes it as an entry of the log. */
  public byte[] encode() {
    return (MARK + (once ? "once " : "rounds ") + id).getBytes(StandardCharsets.UTF_8);
  }

  /** Reads an entry of the log. */
  public static Inquiry decode(byte[] bytes) {
    String[] words = new String(bytes, StandardCharsets.UTF_8).substring(1).split(" ", 2);
    if (words.length != 2) {
      throw new IllegalArgumentException("not an inquiry");
    }
    return new Inquiry(words[1], words[0].equals("once"));
  }

  String askKey(long round) {
    return "status/" + id + "/ask/" + round;
  }

  String answerKey(long round, int rank) {
    return "status/" + id + "/" + round + "/" + rank;
  }
}
