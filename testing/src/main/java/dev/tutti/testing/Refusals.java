package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Static methods that assert that a call is refused before anything is sent. */
final class Refusals {
  private Refusals() {}

  /** A call of an operation. */
  interface Call {
    void run() throws Throwable;
  }

  /**
   * Asserts that a call throws an IllegalArgumentException that names the rank and the argument.
   */
  static void badArgument(Member member, String named, Call call) {
    refused(member, IllegalArgumentException.class, named, call);
  }

  /**
   * Asserts that a call throws an UnsupportedOperationException that names the rank and the
   * unsupported thing.
   */
  static void unsupported(Member member, String named, Call call) {
    refused(member, UnsupportedOperationException.class, named, call);
  }

  private static void refused(
      Member member, Class<? extends Throwable> type, String named, Call call) {
    long before = member.group().sequenceNumber();
    assertThatThrownBy(call::run)
        .isInstanceOf(type)
        .hasMessageContaining(named)
        .hasMessageContaining("rank " + member.rank());
    assertThat(member.group().sequenceNumber())
        .as("sequence number after a refused call")
        .isEqualTo(before);
    assertThat(member.group().failure()).as("failure after a refused call").isEmpty();
  }
}
