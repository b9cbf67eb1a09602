package dev.tutti.contracts.history;

import org.jspecify.annotations.Nullable;

/**
 * A call of a client, with the times between which the store carried it out.
 *
 * @param client the number of the client
 * @param kind what was called
 * @param key the counter, register or queue
 * @param expected what a {@link Kind#COMPARE_SET} expects; null if it expects no value
 * @param value what is set or pushed, or the decimal number that is added; null if nothing is
 * @param result the counter's new value, the register's value after the call, the popped value, or
 *     whether a deleted key existed; null if there is no value, or no answer
 * @param invoked when the call began, in ns
 * @param returned when the call was answered, in ns; {@link #NEVER} if it failed, so that it was
 *     carried out at any later time, or not at all
 */
public record HistoryCall(
    int client,
    Kind kind,
    String key,
    @Nullable String expected,
    @Nullable String value,
    @Nullable String result,
    long invoked,
    long returned) {

  /** The time at which a call returned that got no answer. */
  public static final long NEVER = Long.MAX_VALUE;

  /** What was called. */
  public enum Kind {
    /** Add 1 to a counter, or 0 to read it. */
    ADD,
    /** Set a register. */
    SET,
    /** Read a register. */
    GET,
    /** Set a register if it has the expected value. */
    COMPARE_SET,
    /** Delete a register. */
    DELETE,
    /** Append to a queue. */
    PUSH,
    /** Take the first value of a queue, without waiting. */
    POP
  }

  boolean isAnswered() {
    return returned != NEVER;
  }

  /** Returns whether this call ended before another began. */
  boolean precedes(HistoryCall other) {
    return returned < other.invoked;
  }
}
