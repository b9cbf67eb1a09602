package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests that a group of one rank orders its operations as larger groups do. */
class SoleRankTest {
  private final FakeMachine machine = new FakeMachine(1);

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  /** Starts an operation. */
  private interface Start {
    Work on(ProcessGroup group, CudaDevice device);
  }

  private static Work gather(ProcessGroup group, CudaDevice device) {
    Tensor input = device.tensors().allocate(DType.FLOAT32, 2);
    Tensor output = device.tensors().allocate(DType.FLOAT32, 2);
    return group.allGatherInto(output, input, CallOptions.ASYNC);
  }

  private void assertFollowsItsStream(Start start) throws Exception {
    new CudaRanks(machine.cuda)
        .run(
            1,
            (group, device) -> {
              CountDownLatch held = machine.hold(device.currentStream());
              Work work = start.on(group, device);
              boolean early = work.isCompleted();
              machine.fake.clearCalls();
              CudaStream other = device.poolStream();
              try (CudaStream.Scope _ = other.use()) {
                work.synchronize();
              }
              String ordered = "cuStreamWaitEvent 0x" + Long.toHexString(other.handle());
              long waits =
                  machine.fake.calls("cuStreamWaitEvent").stream()
                      .filter(call -> call.startsWith(ordered))
                      .count();
              boolean otherIsIdle = other.isIdle();
              held.countDown();
              assertThat(early).as("completed while its stream is held").isFalse();
              assertThat(waits).as("waits of the other stream").isOne();
              assertThat(otherIsIdle).isFalse();
              work.await();
              assertThat(work.isCompleted()).isTrue();
            });
  }

  @Test
  void aCopyEndsWhenTheDeviceHasDoneIt() throws Exception {
    assertFollowsItsStream(SoleRankTest::gather);
  }

  @Test
  void anOperationWithoutWorkEndsAfterTheWorkBefore() throws Exception {
    assertFollowsItsStream(
        (group, device) ->
            group.broadcast(device.tensors().allocate(DType.FLOAT32, 2), 0, CallOptions.ASYNC));
  }

  @Test
  void aBarrierEndsAfterTheWorkBefore() throws Exception {
    assertFollowsItsStream((group, device) -> group.barrier(CallOptions.ASYNC));
  }

  @Test
  void whatIsCapturedEndsAtOnce() throws Exception {
    new CudaRanks(machine.cuda)
        .run(
            1,
            (group, device) -> {
              try (CudaSession session = new CudaSession(device)) {
                // In the session's stream, in which the graph is replayed.
                Tensor input = device.tensors().copyOf(Tensor.of(1f, 2f));
                Tensor output = device.tensors().allocate(DType.FLOAT32, 2);
                Runnable gather =
                    () ->
                        assertThat(
                                group.allGatherInto(output, input, CallOptions.ASYNC).isCompleted())
                            .isTrue();
                try (Recording graph = session.record(gather)) {
                  graph.replay();
                  assertThat(device.tensors().toHost(output).toFloatArray()).containsExactly(1, 2);
                }
              }
            });
  }
}
