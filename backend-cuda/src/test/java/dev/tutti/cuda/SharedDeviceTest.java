package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests copies on a device that several ranks of a process use. */
class SharedDeviceTest {
  private static final int BYTES = 48;

  private final FakeMachine machine = new FakeMachine(1);

  @AfterEach
  void close() {
    machine.close();
  }

  private long copies() {
    return machine.fake.calls("cuMemcpyAsync").stream()
        .filter(each -> each.contains(" " + BYTES + " "))
        .count();
  }

  /** A copy in a hardware queue would hold up another rank's, for which the kernel may wait. */
  @Test
  void noCopyIsPutBehindAKernel() throws Exception {
    new CudaRanks(machine.cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, BYTES / 4);
              if (group.rank() == 0) {
                CudaStream stream = device.currentStream();
                CountDownLatch kernel = machine.hold(stream);
                Thread copy =
                    Thread.ofPlatform()
                        .start(
                            () -> {
                              try (CudaStream.Scope _ = stream.use()) {
                                Tensor host = Tensor.allocate(DType.FLOAT32, BYTES / 4);
                                device.tensors().copyFromHost(tensor, host.fill(3));
                              }
                            });
                Until.holds(
                    "the end of the call, or its wait",
                    () ->
                        List.of(Thread.State.TERMINATED, Thread.State.TIMED_WAITING)
                            .contains(copy.getState()));
                assertThat(copies()).isZero();
                kernel.countDown();
                copy.join();
                assertThat(copies()).isEqualTo(1);
                assertThat(device.tensors().toHost(tensor).toFloatArray()).containsOnly(3);
              }
              group.store().barrier("copied", 2, Until.LONG);
            });
  }
}
