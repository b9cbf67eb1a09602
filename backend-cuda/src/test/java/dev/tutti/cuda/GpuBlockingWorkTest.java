package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.ThreadedWorld;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Orders GPU streams after operations on the host. */
@ExtendWith(Gpu.class)
class GpuBlockingWorkTest {
  @Test
  void aStreamSeesTheResultOfAnOperationOnTheHost() {
    CudaDevice device = Cuda.get().device(0);
    CountDownLatch blocked = new CountDownLatch(1);
    ThreadedWorld.run(
        2,
        group -> {
          Tensor tensor = Tensor.of(1f, 2f);
          if (group.rank() == 1) {
            assertThat(blocked.await(60, TimeUnit.SECONDS)).isTrue();
            group.allReduce(tensor);
            return;
          }
          CudaStream stream = device.poolStream();
          try (CudaStream.Scope _ = stream.use()) {
            Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
            work.blockCurrentStream("cuda");
            CudaEvent after = stream.record();
            assertThat(after.awaitReached(System.nanoTime() + 50_000_000)).isFalse();
            blocked.countDown();
            assertThat(after.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
            assertThat(tensor.toFloatArray()).containsExactly(2, 4);
          }
        });
  }

  @Test
  void anOperationThatFailsReleasesTheStream() {
    CudaDevice device = Cuda.get().device(0);
    ThreadedWorld.run(
        2,
        group -> {
          if (group.rank() == 1) {
            Until.holds("the failure", () -> group.failure().isPresent());
            return;
          }
          CudaStream stream = device.poolStream();
          try (CudaStream.Scope _ = stream.use()) {
            Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
            work.blockCurrentStream("cuda");
            CudaEvent after = stream.record();
            group.abort("no longer needed");
            assertThat(after.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
            assertThatThrownBy(work::await).isInstanceOf(CollectiveException.class);
          }
        });
  }
}
