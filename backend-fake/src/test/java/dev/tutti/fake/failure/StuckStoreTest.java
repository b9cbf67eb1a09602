package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.shared.NeverEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that a failure reaches every work although the store hangs. */
@Isolated("threads of other tests in shared locks would bring in real time")
class StuckStoreTest {
  /** How long the store may take to answer, as shipped. */
  private static final Duration ANSWER = Duration.ofSeconds(5);

  /** When the watchdog looks after a deadline. */
  private static final Duration LOOK = Duration.ofMillis(50);

  private interface Body {
    void run(ProcessGroup group) throws Exception;
  }

  private final ScriptedProvider provider = ScriptedProvider.deaf();
  private final StuckStore store = new StuckStore();

  /** Plays rank 0 of 2, and closes its group once the store answers again. */
  private void play(Body body) throws Exception {
    try (ProcessGroup group =
        ProcessGroup.init(Simulation.options(0, 2, store.around(Simulation.store()), provider))) {
      try {
        body.run(group);
      } finally {
        store.released.countDown();
      }
    }
  }

  private static Work allReduce(ProcessGroup group) {
    return group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
  }

  @Simulated
  void anAbortEndsEveryWork() throws Exception {
    CountDownLatch aborted = new CountDownLatch(1);
    provider.abort = cause -> aborted.countDown();
    provider.collective =
        op -> {
          aborted.await();
          throw new IllegalStateException("aborted");
        };
    play(
        group -> {
          Work running = allReduce(group);
          Work queued = allReduce(group);
          Work message = group.recv(Tensor.of(1f), 1, 0, CallOptions.ASYNC);
          store.stuck = true;
          group.abort("store and all");
          for (Work work : List.of(queued, running, message)) {
            assertThatThrownBy(work::await)
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("store and all");
          }
          assertThat(Simulation.now()).isEqualTo(ANSWER);
        });
  }

  @Simulated
  void aTimeoutIsTold() throws Exception {
    play(
        group -> {
          store.stuck = true;
          Duration timeout = Duration.ofMillis(200);
          Work work = group.recv(Tensor.of(1f), 1, 0, CallOptions.timeout(timeout).withAsync());
          assertThatThrownBy(work::await).isInstanceOf(CollectiveTimeoutException.class);
          assertThat(work.state()).isEqualTo(WorkState.TIMED_OUT);
          assertThat(Simulation.now()).isEqualTo(timeout.plus(LOOK).plus(ANSWER));
        });
  }

  @Simulated
  void aStreamIsNotOrderedAfterWorkWhoseFailureIsNotJudgedYet() throws Exception {
    provider.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
    CountDownLatch enqueued = new CountDownLatch(1);
    Operation[] running = new Operation[1];
    provider.collective =
        op -> {
          op.enqueued(new NeverEvent(Simulation.time()));
          running[0] = op;
          enqueued.countDown();
        };
    play(
        group -> {
          Work work = allReduce(group);
          enqueued.await();
          store.stuck = true;
          running[0].fail(new PeerLostException(1, "rank 1 closed the group", null), 1);
          assertThatThrownBy(work::synchronize)
              .isInstanceOfSatisfying(
                  CollectiveException.class,
                  failure -> assertThat(failure.failedRank()).hasValue(1))
              .hasMessageContaining("rank 1 closed the group");
          assertThat(Simulation.now()).isEqualTo(ANSWER);
        });
  }
}
