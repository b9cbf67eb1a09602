package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import dev.tutti.testing.HeldTime;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests graphs that replay a collective. */
class CudaReplayTest {
  private final FakeMachine machine = new FakeMachine(4);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void aGraphRunsAgain() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              CudaRanks.sum(group, tensor).await();
              try (CudaSession session = new CudaSession(device);
                  Recording graph =
                      session.record(
                          () -> assertThat(CudaRanks.sum(group, tensor).isCompleted()).isTrue())) {
                graph.replay();
                graph.replay();
                assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(8f, 16f);
              }
            });
  }

  @Test
  void aReplayThatAPeerDoesNotMakeFailsTheGroup() throws Exception {
    HeldTime time = new HeldTime();
    CallOptions soon = CallOptions.timeout(Duration.ofMillis(200));
    new CudaRanks(cuda)
        .withTime(time)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              CudaRanks.sum(group, tensor).await();
              // The deadline must not pass while a rank records.
              time.hold();
              try (CudaSession session = new CudaSession(device);
                  Recording graph =
                      session.record(() -> group.allReduce(tensor, ReduceOp.SUM, soon))) {
                group.store().barrier("recorded", 2, Until.LONG);
                time.release();
                if (group.rank() == 0) {
                  graph.replay();
                }
                Until.holds("the failure", () -> group.failure().isPresent());
                assertThat(group.failure().orElseThrow())
                    .hasMessageContaining("rank 0 waited for rank 1 on its device");
              }
            });
  }

  @Test
  void aCloseWaitsForAReplayThatHasNotBegun() throws Exception {
    FakeMachine own = new FakeMachine(2);
    CountDownLatch looked = new CountDownLatch(2);
    HeldTime time = new HeldTime();
    new CudaRanks(own.cuda)
        .withTime(time)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              CudaRanks.sum(group, tensor).await();
              try (CudaSession session = new CudaSession(device);
                  Recording graph = session.record(() -> group.allReduce(tensor))) {
                CountDownLatch held = own.hold(device.currentStream());
                graph.replay();
                group.store().barrier("replayed", 2, Until.LONG);
                // A close that waits too long leaves the memory.
                time.hold();
                FutureTask<?> close = new FutureTask<>(group::close, null);
                Thread.ofPlatform().daemon().start(close);
                Until.holds("the waits", () -> own.fake.calls("cuCtxSynchronize").size() == 2);
                assertThat(own.fake.calls("cuMemUnmap")).isEmpty();
                assertThat(close.isDone()).isFalse();
                looked.countDown();
                assertThat(looked.await(60, TimeUnit.SECONDS)).isTrue();
                held.countDown();
                close.get(60, TimeUnit.SECONDS);
                device.currentStream().await(Until.LONG);
              }
            });
    assertThat(own.fake.calls("cuMemUnmap")).hasSize(4);
    own.close();
  }
}
