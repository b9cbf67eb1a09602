package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import java.lang.foreign.Arena;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;

/** A producer and a consumer of tensors in this process, which the fake driver allows. */
abstract class IpcPair {
  final FakeMachine machine = new FakeMachine(2);
  final FakeCudaDriver fake = machine.fake;
  final CudaDevice device = machine.cuda.device(1);
  final CudaIpc producer = new CudaIpc(machine.cuda, IpcChild.JOB, true);
  final CudaIpc consumer = new CudaIpc(machine.cuda, IpcChild.JOB, true);

  @AfterEach
  void close() {
    machine.close();
  }

  Tensor tensor(Arena arena, float... values) {
    Tensor tensor = producer.allocate(device, arena, DType.FLOAT32, values.length);
    device.tensors().copyFromHost(tensor, Tensor.of(values));
    return tensor;
  }

  Tensor tensor() {
    return tensor(Arena.ofAuto(), 1, 2, 3);
  }

  long used() {
    return Parts.of(device).sharable().usage().usedBytes();
  }

  static void refused(Reason reason, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(CudaIpcException.class)
        .satisfies(e -> assertThat(((CudaIpcException) e).reason()).isEqualTo(reason));
  }
}
