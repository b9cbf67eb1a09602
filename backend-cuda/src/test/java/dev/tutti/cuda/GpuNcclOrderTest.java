package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cuda.provider.NcclBackendProvider;
import java.time.Duration;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests NCCL messages alongside a collective that waits on the device for the receiver. */
@ExtendWith(GpuNccl.class)
class GpuNcclOrderTest {
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aMessagePassesACollectiveThatWaits(boolean first) throws Exception {
    assumeTrue(Cuda.get().deviceCount() > 1, "NCCL wants a GPU for each rank");
    new CudaRanks(Cuda.get())
        .on(new NcclBackendProvider())
        .within(Duration.ofSeconds(20))
        .run(
            2,
            (group, device) -> {
              int rank = group.rank();
              Tensor sum = device.tensors().copyOf(Tensor.of(rank + 1f));
              Tensor message = device.tensors().copyOf(Tensor.of(rank + 7f));
              group.barrier();
              if (!first) {
                pass(group, rank, message);
              }
              device.currentStream().await(Duration.ofSeconds(10));
              Work work;
              if (rank == 0) {
                work = allReduceAside(group, device, sum);
                pass(group, rank, message);
              } else {
                pass(group, rank, message);
                work = allReduceAside(group, device, sum);
              }
              work.await();
              assertThat(device.tensors().toHost(sum).toFloatArray()).containsExactly(3f);
              assertThat(device.tensors().toHost(message).toFloatArray()).containsExactly(7f);
            });
  }

  private static void pass(ProcessGroup group, int rank, Tensor message) {
    if (rank == 0) {
      group.send(message, 1);
    } else {
      group.recv(message, 0);
    }
  }

  private static Work allReduceAside(ProcessGroup group, CudaDevice device, Tensor sum) {
    try (CudaStream.Scope _ = device.poolStream().use()) {
      return group.allReduce(sum, ReduceOp.SUM, CallOptions.ASYNC);
    }
  }
}
