package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * A rank's question to the others of its group while an operation waits for a long time.
 *
 * @param group the group
 * @param reporter the rank in that group that asks
 * @param op the operation that waits
 * @param sequence the number of the operation
 * @param peer the other rank of a message, or -1
 * @param tag the tag of a message
 * @param elapsed how long the operation has waited
 */
record Question(
    String group, int reporter, OpType op, long sequence, int peer, int tag, Duration elapsed) {
  /** Marks an entry of the log as a question; a failure begins with the name of a group instead. */
  private static final char MARK = 1;

  private static final int PARTS = 7;

  /** Tells whether an entry of the log is a question. */
  static boolean isQuestion(byte[] bytes) {
    return bytes.length > 0 && bytes[0] == MARK;
  }

  /**
   * Tells whether the answer to this question also answers another one, asked at about the same
   * time.
   */
  boolean isSame(Question other) {
    return op == other.op
        && sequence == other.sequence
        && !op.isPointToPoint()
        && elapsed.compareTo(other.elapsed.multipliedBy(3).dividedBy(2)) < 0;
  }

  /** Returns the time-out that the operation would end in. */
  FailureEvent timeout() {
    return new FailureEvent(
        group, FailureEvent.Kind.TIMEOUT, reporter, -1, op, sequence, peer, tag, elapsed, "");
  }

  byte[] encode() {
    String text =
        MARK
            + String.join(
                "\n",
                group,
                Integer.toString(reporter),
                op.name(),
                Long.toString(sequence),
                Integer.toString(peer),
                Integer.toString(tag),
                Long.toString(elapsed.toMillis()));
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static Question decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).substring(1).split("\n", -1);
    if (parts.length != PARTS) {
      throw new IllegalArgumentException("not a question: " + parts.length + " parts");
    }
    return new Question(
        parts[0],
        Integer.parseInt(parts[1]),
        OpType.valueOf(parts[2]),
        Long.parseLong(parts[3]),
        Integer.parseInt(parts[4]),
        Integer.parseInt(parts[5]),
        Duration.ofMillis(Long.parseLong(parts[6])));
  }
}
