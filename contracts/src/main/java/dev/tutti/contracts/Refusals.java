package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.ProcessGroup;

/**
 * Assertions that calls of a rank are refused before anything is sent.
 *
 * @param member the rank that makes the calls
 */
record Refusals(Member member) {
  /** A call of an operation. */
  interface Call {
    void run() throws Throwable;
  }

  /** The bad calls of a rank. */
  interface BadCalls {
    void run(Member member, ProcessGroup group, Refusals refused) throws Exception;
  }

  /** Makes bad calls on all ranks of a new group, and asserts that the group stays usable. */
  static void check(ContractWorld world, BadCalls calls) throws Exception {
    world.run(
        member -> {
          calls.run(member, member.group(), new Refusals(member));
          member.assertUsable();
        });
  }

  /**
   * Asserts that a call throws an IllegalArgumentException that names the rank and the argument.
   */
  void badArgument(String named, Call call) {
    refused(IllegalArgumentException.class, named, call);
  }

  /**
   * Asserts that a call throws an UnsupportedOperationException that names the rank and the
   * unsupported thing.
   */
  void unsupported(String named, Call call) {
    refused(UnsupportedOperationException.class, named, call);
  }

  private void refused(Class<? extends Throwable> type, String named, Call call) {
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
