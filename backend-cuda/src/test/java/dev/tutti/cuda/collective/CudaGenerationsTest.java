package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.GenerationCases;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that groups on fake devices go on with other members. */
@Isolated("counts the threads of the process")
class CudaGenerationsTest extends GenerationCases {
  @Override
  protected CudaRanks ranks() {
    return new CudaRanks(machine.cuda);
  }

  @Override
  protected int communicators() {
    return 0;
  }

  @Test
  void aGraphOfAnEarlierGenerationIsNamedAndMeetsNothingOfTheNext() throws Exception {
    ranks()
        .run(
            store,
            2,
            (group, device) -> {
              int self = group.rank();
              try (CudaSession session = new CudaSession(device)) {
                Tensor tensor = device.tensors().copyOf(Tensor.of(1));
                Recording graph = session.record(() -> group.allReduce(tensor));
                graph.replay();
                device.currentStream().await(Until.LONG);
                assertThat(device.tensors().toHost(tensor).toIntArray()).containsExactly(2);
                int words = Parts.of(device).pinned().blocksInUse();
                ProcessGroup next = group.shrink();
                assertThat(sum(next, device, self + 1)).isEqualTo(3);
                next.store().barrier("changed", 2, Until.LONG);
                assertThat(machine.fake.calls("cuMemUnmap")).hasSize(4);
                assertThat(machine.fake.calls("cuMemAddressFree")).isEmpty();
                assertThat(Parts.of(device).pinned().blocksInUse()).isEqualTo(words + 1);
                if (self == 0) {
                  graph.replay();
                }
                Until.holds("the failure of the device", () -> hasFailed(device.currentStream()));
                assertThatThrownBy(() -> next.allReduce(tensor))
                    .hasStackTraceContaining("CUDA_ERROR_ILLEGAL_ADDRESS (700)")
                    .hasStackTraceContaining(
                        "was a graph replayed that was captured in group 0? That group is closed");
                assertThatThrownBy(next::shrink)
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("rank " + self + " cannot continue after group 0~")
                    .hasMessageContaining(device + " has failed: ")
                    .hasMessageContaining("That group is closed");
                next.store().barrier("seen", 2, Duration.ofMinutes(1));
                machine.fake.fail(0);
                graph.close();
                next.close();
              }
            });
  }

  private static boolean hasFailed(CudaStream stream) {
    return catchThrowable(stream::isIdle) instanceof CudaException;
  }
}
