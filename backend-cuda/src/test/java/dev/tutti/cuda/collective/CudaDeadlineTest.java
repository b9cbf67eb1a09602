package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests that operations on devices end at their deadlines in terms of the group's clock. */
class CudaDeadlineTest {
  private static final Duration SHORT = Duration.ofMillis(200);

  /** A clock of which no other one knows what it shows. */
  private static final Time BEHIND =
      new ForwardingTime(Time.SYSTEM) {
        @Override
        public long nanoTime() {
          return super.nanoTime() - Duration.ofHours(1).toNanos();
        }
      };

  private final FakeMachine machine = new FakeMachine(2);

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void aCollectiveHasItsTime() throws Exception {
    new CudaRanks(machine.cuda)
        .withTime(BEHIND)
        .run(
            2,
            (group, device) -> {
              if (group.rank() == 0) {
                Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
                assertThatThrownBy(
                        () ->
                            group
                                .allReduce(tensor, ReduceOp.SUM, CallOptions.timeout(SHORT))
                                .await())
                    .isInstanceOfSatisfying(
                        CollectiveTimeoutException.class,
                        e -> assertThat(e.elapsed()).isGreaterThanOrEqualTo(SHORT));
              }
              Until.holds("the failure", () -> group.failure().isPresent());
            });
  }
}
