package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;

/**
 * A rank's question to the others of its group while an operation waits for a long time.
 *
 * @param timeout the time-out that the operation would end in
 */
record Question(FailureEvent timeout) {
  /** Marks an entry of the log as a question; a failure begins with the name of a group instead. */
  private static final char MARK = 1;

  /**
   * Creates a question.
   *
   * @param reporter the rank in the group that asks
   * @param peer the other rank of a message, or -1
   * @param elapsed how long the operation has waited
   */
  Question(
      String group, int reporter, OpType op, long sequence, int peer, int tag, Duration elapsed) {
    this(new FailureEvent(group, Kind.TIMEOUT, reporter, -1, op, sequence, peer, tag, elapsed, ""));
  }

  /** Returns the group of the operation. */
  String group() {
    return timeout.group();
  }

  /** Returns the rank in the group that asks. */
  int reporter() {
    return timeout.reporter();
  }

  /** Returns whether an entry of the log is a question. */
  static boolean isQuestion(byte[] bytes) {
    return bytes.length > 0 && bytes[0] == MARK;
  }

  /**
   * Returns whether the answer to this question also answers another one, asked at about the same
   * time.
   */
  boolean isSame(Question other) {
    FailureEvent theirs = other.timeout;
    return timeout.op() == theirs.op()
        && timeout.sequence() == theirs.sequence()
        && !timeout.op().isPointToPoint()
        && timeout.elapsed().compareTo(theirs.elapsed().multipliedBy(3).dividedBy(2)) < 0;
  }

  /** Returns whether this is another question as it is in the log. */
  boolean isOf(Question other) {
    return timeout.isSame(other.timeout);
  }

  byte[] encode() {
    byte[] event = timeout.encode();
    return ByteBuffer.allocate(1 + event.length).put((byte) MARK).put(event).array();
  }

  static Question decode(byte[] bytes) {
    return new Question(FailureEvent.decode(Arrays.copyOfRange(bytes, 1, bytes.length)));
  }
}
