package dev.tutti.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what happens to groups on NCCL if one of their processes is killed: one of three, or of two
 * if there are two GPUs.
 */
@ExtendWith(GpuNccl.class)
class GpuNcclFaultsTest {
  @ParameterizedTest
  @ValueSource(strings = {"nccl", "nccl-messages"})
  void aKilledRankFailsTheOthers(String where, @TempDir Path directory) throws Exception {
    int ranks = Math.min(GpuFaultsTest.RANKS, Cuda.get().deviceCount());
    assumeTrue(ranks > 1, "NCCL needs a GPU for each rank");
    GpuFaultsTest.killOne(where, ranks, directory);
  }
}
