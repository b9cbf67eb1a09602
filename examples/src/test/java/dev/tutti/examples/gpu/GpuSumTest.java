package dev.tutti.examples.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.cuda.Cuda;
import dev.tutti.examples.Printed;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class GpuSumTest {
  @Test
  void saysInOneSentenceThatThereIsNoGpu() throws Exception {
    Optional<String> reason = Cuda.unusableReason();
    assumeThat(reason).as("this machine has a GPU").isPresent();
    assertThat(Printed.by(GpuSum::main))
        .containsExactly("this example needs an NVIDIA GPU: " + reason.orElseThrow());
    assertThat(reason.orElseThrow()).contains("CUDA 13.0");
  }
}
