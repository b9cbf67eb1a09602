package dev.tutti.runtime.failure;

import dev.tutti.runtime.status.Inquiry;
import java.nio.charset.StandardCharsets;

/** An entry of the log that the ranks of a job share. */
sealed interface LogEntry {
  /*
   * The first byte distinguishes the kinds. A failure begins with the name of its group, or with a
   * line feed if it concerns all groups; everything else has a mark below that. Readers skip unknown
   * marks, so that a later version can add kinds.
   */

  /** The marks that are not the first byte of a failure. */
  int MARKS = '\n';

  /** A failure that a rank reports, or leaves for the case of its loss. */
  record Failed(FailureEvent event) implements LogEntry {
    @Override
    public byte[] encode() {
      return event.encode();
    }
  }

  /** A question of a rank whose operation waits for long. */
  record Asked(Question question) implements LogEntry {
    @Override
    public byte[] encode() {
      return question.encode();
    }
  }

  /** A request from outside the job. */
  record Inquired(Inquiry inquiry) implements LogEntry {
    @Override
    public byte[] encode() {
      return inquiry.encode();
    }
  }

  /**
   * What was found out about the first failure of a group.
   *
   * @param by the rank in the group that found it out
   */
  record Found(String group, int by, Diagnosis finding) implements LogEntry {
    private static final char MARK = 3;

    @Override
    public byte[] encode() {
      String text = MARK + group + "\n" + by + "\n" + finding.failedRank() + "\n" + finding.text();
      return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Found decode(byte[] bytes) {
      String[] parts = new String(bytes, StandardCharsets.UTF_8).substring(1).split("\n", 3);
      if (parts.length != 3) {
        throw new IllegalArgumentException("not a finding: " + parts.length + " parts");
      }
      return new Found(
          parts[0],
          Integer.parseInt(parts[1]),
          Diagnosis.decode(parts[2].getBytes(StandardCharsets.UTF_8)));
    }
  }

  /** An entry of a later version. */
  record Unknown() implements LogEntry {
    @Override
    public byte[] encode() {
      throw new IllegalStateException("an entry of a later version");
    }
  }

  /** Returns the bytes of an entry. */
  byte[] encode();

  /**
   * Decodes an entry.
   *
   * @throws IllegalArgumentException if the bytes are not those of an entry
   */
  static LogEntry decode(byte[] bytes) {
    if (isFailure(bytes)) {
      return new Failed(FailureEvent.decode(bytes));
    }
    if (Question.isQuestion(bytes)) {
      return new Asked(Question.decode(bytes));
    }
    if (Inquiry.isInquiry(bytes)) {
      return new Inquired(Inquiry.decode(bytes));
    }
    return bytes[0] == Found.MARK ? Found.decode(bytes) : new Unknown();
  }

  /** Returns whether an entry is a failure. */
  static boolean isFailure(byte[] bytes) {
    return bytes.length == 0 || (bytes[0] & 0xff) >= MARKS;
  }
}
