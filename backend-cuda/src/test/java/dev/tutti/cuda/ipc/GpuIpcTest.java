package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.Gpu;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HexFormat;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Shares tensors on a GPU between processes, some of which are killed. */
@ExtendWith(Gpu.class)
@Isolated("counts the descriptors of the process")
class GpuIpcTest {
  private static final int CYCLES = Integer.getInteger("tutti.test.ipcCycles", 5000);
  private static final int KILL_EVERY = 1000;
  private static final int CONSUMERS = 3;

  private final Cuda cuda = Cuda.get();
  private final CudaDevice device = cuda.device(0);

  @Test
  @Timeout(900)
  void whatIsSharedIsSeenAndComesBack() throws Exception {
    try (CudaIpc ipc = CudaIpc.create(cuda, IpcChild.JOB)) {
      System.out.println(new IpcCycles(ipc, device, "gpu", CONSUMERS).run(CYCLES, KILL_EVERY));
    }
  }

  @Test
  @Timeout(900)
  void aTensorEndsWithTheProcessThatSharedIt() throws Exception {
    try (CudaIpc ipc = CudaIpc.create(cuda, IpcChild.JOB);
        IpcProcess producer = new IpcProcess("gpu").ready()) {
      byte[] first = handle(producer, 3);
      byte[] second = handle(producer, 4);
      ReceivedTensor received = ipc.open(first);
      assertThat(device.tensors().toHost(received.tensor()).toFloatArray()).containsOnly(3);
      long start = System.nanoTime();
      for (int i = 0; i < 20; i++) {
        try (ReceivedTensor more = ipc.open(handle(producer, i))) {
          assertThat(device.tensors().toHost(more.tensor()).toFloatArray()).containsOnly(i);
        }
      }
      System.out.println("20 tensors took " + (System.nanoTime() - start) / 1000 + " us");
      producer.kill();
      refused(received::tensor);
      refused(() -> ipc.open(second));
      received.close();
      device.tensors().copyOf(Tensor.of(1f));
    }
  }

  @Test
  @Timeout(900)
  void aProducerThatEndsWithoutCloseWarnsOfWhatOthersLose(@TempDir Path folder) throws Exception {
    try (CudaIpc ipc = CudaIpc.create(cuda, IpcChild.JOB)) {
      ExitWarnings.check(ipc, "gpu", folder);
    }
  }

  private static void refused(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(CudaIpcException.class)
        .satisfies(
            e ->
                assertThat(((CudaIpcException) e).reason())
                    .isEqualTo(CudaIpcException.Reason.PRODUCER_GONE));
  }

  private static byte[] handle(IpcProcess producer, int number) throws IOException {
    String answer = producer.ask("share " + number);
    return HexFormat.of().parseHex(answer.substring("shared ".length()));
  }
}
