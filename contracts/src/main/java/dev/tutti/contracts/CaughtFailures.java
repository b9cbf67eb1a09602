package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveException;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/**
 * Static methods that catch what operations throw, and assert what every such exception must say.
 */
final class CaughtFailures {
  /**
   * The time that an operation may take to fail after its deadline, or after the failure of a peer:
   * less than half of a group's own deadline, even on a busy machine.
   */
  static final Duration SLACK = Duration.ofSeconds(20);

  /** The same for operations that may begin with a wait of the backend's own. */
  static final Duration SOON = Duration.ofSeconds(25);

  private CaughtFailures() {}

  /** Returns an exception and its causes. */
  static List<Throwable> causes(Throwable thrown) {
    return Stream.iterate(thrown, each -> each != null, Throwable::getCause).toList();
  }

  /**
   * Asserts that a call fails within a time, with an exception that says which rank reports which
   * operation, and returns the exception.
   */
  static CollectiveException expect(Member member, Duration within, Refusals.Call call) {
    long start = System.nanoTime();
    Throwable thrown = catchThrowable(call::run);
    Duration took = Duration.ofNanos(System.nanoTime() - start);
    assertThat(thrown).isInstanceOf(CollectiveException.class);
    assertThat(took).as("time until %s", thrown).isLessThan(within);
    CollectiveException failure = (CollectiveException) thrown;
    assertThat(failure.rank()).isEqualTo(member.rank());
    assertThat(failure.info().size()).isEqualTo(member.size());
    assertThat(failure.info().group()).isEqualTo(member.group().name());
    assertThat(failure)
        .hasMessageContaining("rank " + member.rank())
        .hasMessageContaining(failure.opType().label());
    return failure;
  }

  /** Asserts that the group failed and that a later operation names the first failing rank. */
  static void assertFailed(Member member, int failedRank) {
    Waiting.until("the failure", () -> member.group().failure().isPresent());
    assertThat(member.group().isClosed()).isFalse();
    CollectiveException later = expect(member, SLACK, member::collective);
    assertThat(later.failedRank()).as("first failing rank in: %s", later).hasValue(failedRank);
  }
}
