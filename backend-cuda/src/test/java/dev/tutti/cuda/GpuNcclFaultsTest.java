package dev.tutti.cuda;

import java.nio.file.Path;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what happens to groups on NCCL when one of three processes is killed. */
@ExtendWith(GpuNccl.class)
class GpuNcclFaultsTest {
  @ParameterizedTest
  @ValueSource(strings = {"nccl", "nccl-messages"})
  void aKilledRankFailsTheOthers(String where, @TempDir Path directory) throws Exception {
    GpuFaultsTest.killOne(where, directory);
  }
}
