package dev.tutti.cuda.provider;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.NoNccl;
import dev.tutti.spi.DeviceSession;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CudaSessionTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final FakeMachine machine = new FakeMachine(2);
  private final Cuda cuda = machine.cuda;
  private final CudaBackendProvider provider =
      new CudaBackendProvider(() -> cuda, Optional::empty, NoNccl.HERE);

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void tensorsComeAndGoOnAStreamOfTheThread() {
    assertThat(provider.deviceCount()).isEqualTo(2);
    try (DeviceSession session = provider.openDevice(1);
        Arena arena = Arena.ofShared()) {
      assertThat(session.device()).isEqualTo(Device.cuda(1));
      assertThat(cuda.currentStream()).isNotEqualTo(cuda.device(1).defaultStream());
      Tensor tensor = session.allocate(arena, DType.FLOAT32, 2);
      session.copyFromHost(tensor, Tensor.of(3f, 4f));
      Tensor host = Tensor.allocate(DType.FLOAT32, 2);
      session.copyToHost(host, tensor);
      assertThat(host.toFloatArray()).containsExactly(3f, 4f);
    }
    assertThat(cuda.device(1).currentStream()).isEqualTo(cuda.device(1).defaultStream());
  }

  @Test
  void operationsAreTimedAndRecorded() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              try (DeviceSession session = provider.openDevice(device.index());
                  Arena arena = Arena.ofShared()) {
                Tensor tensor = session.allocate(arena, DType.FLOAT32, 1);
                session.copyFromHost(tensor, Tensor.of(1f));
                Runnable call = () -> group.allReduce(tensor, ReduceOp.SUM);
                assertThat(session.time(call, LIMIT).toNanos()).isNotNegative();
                try (DeviceSession.Recording graph = session.record(call)) {
                  assertThat(value(session, tensor)).isEqualTo(2);
                  graph.replay();
                  graph.replay();
                  assertThat(value(session, tensor)).isEqualTo(8);
                }
                group.barrier();
              }
            });
  }

  private static float value(DeviceSession session, Tensor tensor) {
    Tensor host = Tensor.allocate(DType.FLOAT32, 1);
    session.copyToHost(host, tensor);
    return host.toFloatArray()[0];
  }

  @Test
  void workThatCannotBeRecordedLeavesTheStreamUsable() {
    try (DeviceSession session = provider.openDevice(0)) {
      assertThatThrownBy(
              () ->
                  session.record(
                      () -> {
                        throw new UnsupportedOperationException("not this");
                      }))
          .hasMessage("not this");
      assertThat(cuda.device(0).currentStream().isCapturing()).isFalse();
      assertThat(session.time(() -> {}, LIMIT).toNanos()).isNotNegative();
    }
  }

  @Test
  void thereIsNoDeviceBeyondTheLast() {
    assertThatThrownBy(() -> provider.openDevice(2))
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessage("no device cuda:2; devices that this process may use: 2");
  }

  @Test
  void itsFindingsNameTheKernels() {
    assertThat(provider.findings(dev.tutti.Settings.fromEnvironment()).getFirst())
        .matches("kernels compiled by nvcc [0-9.]+ for sm_80 sm_90 sm_100 sm_120 and PTX of 80");
  }

  @Test
  void itIsChosenWhereItsDevicesAreAskedFor() {
    assertThat(provider.isAutoSelectable("cuda")).isTrue();
    assertThat(provider.deviceTypes()).containsExactly("cuda");
  }
}
