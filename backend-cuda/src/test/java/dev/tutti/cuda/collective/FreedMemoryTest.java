package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests operations of a group next to memory that is freed while streams still use it. */
class FreedMemoryTest {
  private final FakeMachine machine = new FakeMachine(2);

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  private static Tensor tensor(CudaDevice device, Arena arena) {
    return device.tensors().allocate(arena, DType.FLOAT32, 1000);
  }

  private long exchanges() {
    return machine.fake.calls("cuLaunchKernel").stream()
        .filter(call -> call.contains("exchange"))
        .count();
  }

  /** The collection of such memory enters the context of another device. */
  @Test
  void anOperationThatCollectsWhatAnotherDeviceUsedCopiesOnItsOwn() throws Exception {
    new CudaRanks(machine.cuda)
        .run(
            2,
            (group, device) -> {
              List<Tensor> parts =
                  List.of(
                      device.tensors().copyOf(Tensor.of(1f, 2f)),
                      device.tensors().copyOf(Tensor.of(3f, 4f)));
              Tensor sum = device.tensors().allocate(DType.FLOAT32, 2);
              CudaStream other = machine.cuda.device(1 - group.rank()).poolStream();
              try (Arena arena = Arena.ofConfined()) {
                device.tensors().useOn(tensor(device, arena), other);
              }
              group.reduceScatter(sum, parts, ReduceOp.SUM);
              float[] expected = group.rank() == 0 ? new float[] {2, 4} : new float[] {6, 8};
              assertThat(device.tensors().toHost(sum).toFloatArray()).isEqualTo(expected);
            });
  }

  /** Holds the work that precedes a message which has found its other side. */
  @Test
  void anAbortKeepsTheMemoryOfAMessageUntilItsKernelHasEnded() throws Exception {
    new CudaRanks(machine.cuda)
        .run(
            2,
            (group, device) -> {
              if (group.rank() == 1) {
                Work _ = group.send(tensor(device, Arena.ofAuto()), 0, 0, CallOptions.ASYNC);
                Until.holds("the failure", () -> group.failure().isPresent());
                return;
              }
              CountDownLatch held = machine.hold(device.currentStream());
              long address;
              try (Arena arena = Arena.ofShared()) {
                Tensor received = tensor(device, arena);
                address = received.segment().address();
                Work work = group.recv(received, 1, 0, CallOptions.ASYNC);
                Until.holds("the kernels of both ranks", () -> exchanges() == 2);
                group.abort("enough");
                assertThatThrownBy(work::await).isInstanceOf(TuttiException.class);
              }
              List<Tensor> later = new ArrayList<>();
              later.add(tensor(device, Arena.ofAuto()));
              held.countDown();
              assertThat(later.getFirst().segment().address()).isNotEqualTo(address);
              Until.holds(
                  "the memory",
                  () -> {
                    later.add(tensor(device, Arena.ofAuto()));
                    return later.getLast().segment().address() == address;
                  });
            });
  }
}
