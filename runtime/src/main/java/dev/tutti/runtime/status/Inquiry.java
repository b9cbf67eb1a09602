package dev.tutti.runtime.status;

import java.nio.charset.StandardCharsets;

/**
 * A request from outside the job that asks all ranks where they stand, as an entry in the log of
 * failures.
 *
 * @param id the unique identifier of the inquirer
 * @param once whether there is only one round; otherwise more may follow
 */
public record Inquiry(String id, boolean once) {
  /*
   * Round N begins when the key "status/ID/ask/N" exists; rank R answers with the key
   * "status/ID/N/R". The key of the first round is written before the entry in the log and removed
   * when the inquirer leaves, so a rank that reads the log later does not answer. A rank waits up
   * to LEASE for the next round, and then forgets the inquirer.
   */

  /** Marks an entry of the log as an inquiry. */
  private static final char MARK = 2;

  /** Returns whether an entry of the log is an inquiry. */
  public static boolean isInquiry(byte[] bytes) {
    return bytes.length > 0 && bytes[0] == MARK;
  }

  /** Encodes this inquiry as an entry of the log. */
  public byte[] encode() {
    return (MARK + (once ? "once " : "rounds ") + id).getBytes(StandardCharsets.UTF_8);
  }

  /** Decodes an entry of the log. */
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
