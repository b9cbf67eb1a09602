package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.GraphCalls;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Captures collectives into a graph before earlier operations have ended. */
@ExtendWith(Gpu.class)
class GpuGraphTest {
  private static final int BEFORE = 150;
  private static final int RECORDED = 200;

  @Test
  void whatEndedIsFreedWithoutHarmToARecording() throws Exception {
    new CudaRanks(Cuda.get())
        .onOneDevice()
        .run(
            2,
            (group, device) -> {
              Tensor host = Tensor.allocate(DType.FLOAT32, 64);
              host.fill(group.rank() + 1);
              Tensor tensor = device.tensors().copyOf(host);
              CudaStream stream = device.currentStream();
              GraphCalls graphs = device.context().driver().graphs();
              for (int i = 0; i < BEFORE; i++) {
                group.allReduce(tensor, ReduceOp.MAX);
              }
              graphs.beginCapture(stream.handle(), GraphCalls.THREAD_LOCAL);
              for (int i = 0; i < RECORDED; i++) {
                group.allReduce(tensor, ReduceOp.MAX);
              }
              group.allReduce(tensor, ReduceOp.SUM);
              long graph = graphs.endCapture(stream.handle());
              long executable = graphs.instantiate(graph);
              graphs.launch(executable, stream.handle());
              stream.await(Duration.ofSeconds(20));
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsOnly(4f);
              group.store().barrier("replayed", 2, Duration.ofSeconds(20));
              graphs.destroyExecutable(executable);
              graphs.destroy(graph);
            });
  }
}
