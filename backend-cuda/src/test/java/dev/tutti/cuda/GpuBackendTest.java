package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Tests ranks on one GPU, and on as many as the machine has. */
@ExtendWith(Gpu.class)
class GpuBackendTest {
  private Cuda cuda;

  @BeforeEach
  void open() {
    cuda = Cuda.get();
  }

  @Test
  void threadsOnOneDevice() throws Exception {
    new CudaRanks(cuda)
        .onOneDevice()
        .with("TUTTI_X_CUDA_LANES", "64")
        .run(2, (group, device) -> new OperationChecks(group, device).all(1, 1000, 300_001));
  }

  @Test
  void threadsOnAllDevices() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_LANES", "128")
        .with("TUTTI_X_CUDA_CHUNK_BYTES", "32K")
        .run(
            Math.max(2, Math.min(8, cuda.deviceCount())),
            (group, device) -> new OperationChecks(group, device).all(1, 1000, 300_001));
  }

  @Test
  void operationsInPartsHaveTheSameResults() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_LANES", "32")
        .with("TUTTI_X_CUDA_CHUNK_BYTES", "32K")
        .run(
            Math.max(2, Math.min(8, cuda.deviceCount())),
            (group, device) ->
                ManyGroups.withOneBlock(
                    device, () -> new OperationChecks(group, device).all(1, 1000, 300_001)));
  }

  @Test
  void groupsInAnyOrderGoOn() throws Exception {
    CudaRanks all =
        new CudaRanks(cuda)
            .with("TUTTI_X_CUDA_LANES", "128")
            .with("TUTTI_X_CUDA_CHUNK_BYTES", "32K");
    ManyGroups.inCyclicOrder(all, Math.max(2, Math.min(8, cuda.deviceCount())), 4_000_000, 100);
  }

  @Test
  void symmetricMemoryOfThreads() throws Exception {
    Duration limit = Duration.ofSeconds(20);
    new CudaRanks(cuda)
        .onOneDevice()
        .run(
            2,
            (group, device) -> {
              try (SymmetricMemory memory = group.allocateSymmetric(16)) {
                Tensor peer = memory.buffer(1 - group.rank(), DType.INT64, 8, 1);
                device.tensors().copyFromHost(peer, Tensor.of(40L + group.rank()));
                memory.barrier(0, limit);
                Tensor own = memory.buffer(group.rank(), DType.INT64, 0, 2);
                assertThat(device.tensors().toHost(own).toLongArray())
                    .containsExactly(0, 41L - group.rank());
                memory.barrier(1, limit);
              }
            });
  }

  @Test
  void processesOnOneDevice(@TempDir Path directory) throws Exception {
    assertThat(GpuChildren.run(directory, GpuRankChild.class, "2"))
        .allSatisfy(text -> assertThat(text).endsWith("good\n"));
  }
}
