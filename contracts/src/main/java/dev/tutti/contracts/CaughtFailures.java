package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Work;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
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

  /**
   * Sends float32 elements to a tensor of another size or type, asserts that the receive fails and
   * writes nothing, and returns the causes of all failures.
   */
  static Collection<Throwable> ofReceive(ContractWorld world, int sent, DType dtype, int wanted)
      throws Exception {
    Collection<Throwable> causes = new ConcurrentLinkedQueue<>();
    world.run(
        member -> {
          if (member.rank() == 0) {
            double[] values = TestData.constant(DType.FLOAT32, 1, sent);
            Work send = member.group().send(member.floats(values).view(), 1, 0, CallOptions.ASYNC);
            Waiting.until("the end of the send", send::isCompleted);
            send.exception().ifPresent(failure -> causes.addAll(causes(failure)));
          } else if (member.rank() == 1) {
            TestTensor tensor = member.blank(Layout.CONTIGUOUS, dtype, wanted);
            Work recv = member.group().recv(tensor.view(), 0, 0, CallOptions.ASYNC);
            CollectiveException failure = expect(member, SOON, recv::await);
            assertThat(failure).isNotInstanceOf(CollectiveTimeoutException.class);
            assertThat(failure.opType()).isEqualTo(OpType.RECV);
            causes.addAll(causes(failure));
            tensor.assertValues(
                "memory of a receive that failed", TestData.constant(dtype, 99, wanted));
          }
          Waiting.until("the failure", () -> member.group().failure().isPresent());
        });
    return causes;
  }
}
