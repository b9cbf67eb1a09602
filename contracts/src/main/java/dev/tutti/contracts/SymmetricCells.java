package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import java.time.Duration;

/**
 * Static methods that read and write symmetric memory as cells of eight bytes, and assert what its
 * methods throw.
 */
final class SymmetricCells {
  private SymmetricCells() {}

  /** Writes cells of a rank's buffer. */
  static void write(Member member, SymmetricMemory memory, int rank, int cell, long... values) {
    Tensor target = memory.buffer(rank, DType.INT64, 8L * cell, values.length);
    member.world().subject().copyIn(Tensor.of(values), target);
  }

  /** Reads cells of a rank's buffer. */
  static long[] read(Member member, SymmetricMemory memory, int rank, int cell, int count) {
    Tensor source = memory.buffer(rank, DType.INT64, 8L * cell, count);
    return member.world().subject().copyOut(source).toLongArray();
  }

  /**
   * Asserts that a wait ends at its deadline and that its exception says which rank waited for
   * which.
   */
  static void assertTimeout(Member member, Duration deadline, int peer, Refusals.Call call) {
    long start = System.nanoTime();
    Throwable thrown = catchThrowable(call::run);
    Duration took = Duration.ofNanos(System.nanoTime() - start);
    assertThat(thrown).isInstanceOf(CollectiveTimeoutException.class);
    assertThat(took).isBetween(deadline, deadline.plus(CaughtFailures.SLACK));
    CollectiveTimeoutException timeout = (CollectiveTimeoutException) thrown;
    assertThat(timeout.rank()).isEqualTo(member.rank());
    assertThat(timeout.info().size()).isEqualTo(member.size());
    assertThat(timeout.info().group()).isEqualTo(member.group().name());
    assertThat(timeout).hasMessageContaining("channel");
    if (peer >= 0) {
      assertThat(timeout.info().peer()).hasValue(peer);
    }
  }

  /** Asserts that an argument is refused. */
  static void assertBad(Refusals.Call call, String named) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(named);
  }

  /** Asserts that a view outside the buffer is refused. */
  static void assertOutside(Refusals.Call call) {
    assertThatThrownBy(call::run).isInstanceOf(IndexOutOfBoundsException.class);
  }
}
