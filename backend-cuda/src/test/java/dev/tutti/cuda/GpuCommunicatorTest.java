package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests calls that block in NCCL itself, with one process per rank. */
@ExtendWith(GpuNccl.class)
class GpuCommunicatorTest {
  @ParameterizedTest
  @ValueSource(strings = {"sums", "abort", "deadline"})
  void callsBlockAndEnd(String what, @TempDir Path directory) throws Exception {
    assumeTrue(Cuda.get().deviceCount() > 1, "NCCL needs a GPU for each rank");
    assertThat(GpuChildren.run(directory, GpuCommunicatorChild.class, what))
        .allSatisfy(text -> assertThat(text).endsWith("good\n").doesNotContain("in time\n"));
  }
}
