package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.ElementCases;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.NoNccl;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.testing.HeldTime;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that an operation on fake devices fails on the rank whose input has a NaN. */
class DeviceNanCheckTest {
  @AutoClose private final FakeMachine machine = new FakeMachine(2);

  /** The backends that take tensors on devices. */
  enum Way {
    CUDA,
    NCCL,
    GLOO,
    GLOO_BY_HOST
  }

  private CudaRanks ranks(Way way) {
    BackendProvider provider =
        switch (way) {
          case CUDA -> new CudaBackendProvider(() -> machine.cuda, Optional::empty, NoNccl.HERE);
          case NCCL -> {
            FakeNccl nccl = new FakeNccl(machine.fake);
            yield new NcclBackendProvider(() -> machine.cuda, Optional::empty, _ -> nccl);
          }
          case GLOO, GLOO_BY_HOST ->
              new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda)));
        };
    return new CudaRanks(machine.cuda)
        .on(provider)
        .with("TUTTI_NAN_CHECK", "1")
        .with("TUTTI_X_GLOO_CUDA_DIRECT", way == Way.GLOO ? "1" : "0");
  }

  @ParameterizedTest
  @EnumSource
  void theRankWithTheNanIsNamed(Way way) throws Exception {
    ElementCases.theRankWithTheNanIsNamed(ranks(way));
  }

  /** The search waits for what the caller enqueued before, also on the thread of the group. */
  @ParameterizedTest
  @EnumSource(names = {"GLOO", "GLOO_BY_HOST"})
  void theSearchComesAfterTheWorkOfTheCaller(Way way) throws Exception {
    ranks(way)
        .run(
            1,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(Float.NaN));
              Tensor good = device.tensors().copyOf(Tensor.of(5f));
              CountDownLatch held = machine.hold(device.currentStream());
              DeviceCopy.copy(device, tensor, good);
              Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
              held.countDown();
              work.await();
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(5);
            });
  }

  /** The search ends at the operation's deadline, even if the stream is held. */
  @ParameterizedTest
  @EnumSource
  void aHeldStreamEndsTheSearchAtTheDeadline(Way way) throws Exception {
    HeldTime time = new HeldTime();
    ranks(way)
        .withTime(time)
        .within(Duration.ofMillis(300))
        .run(
            1,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f));
              CountDownLatch held = machine.hold(device.currentStream());
              // The watchdog, which has the same deadline, must not end the operation first.
              time.hold();
              assertThatThrownBy(() -> group.allReduce(tensor))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("did not search for NaN in time");
              time.release();
              held.countDown();
            });
  }

  /** Memory that was freed is refused, not read. */
  @ParameterizedTest
  @EnumSource
  void freedMemoryIsRefused(Way way) throws Exception {
    ranks(way)
        .run(
            1,
            (group, device) -> {
              Tensor freed;
              try (Arena arena = Arena.ofConfined()) {
                freed = device.tensors().allocate(arena, DType.FLOAT32, 4);
              }
              assertThatThrownBy(() -> group.allReduce(freed))
                  .isInstanceOf(UnsupportedOperationException.class);
              assertThat(group.failure()).isEmpty();
            });
  }

  /** What a rank does not contribute may be anything. */
  @ParameterizedTest
  @EnumSource
  void whatIsNotReadIsNotSearched(Way way) throws Exception {
    ranks(way)
        .run(
            2,
            (group, device) -> {
              float own = group.rank() == 0 ? 3 : Float.NaN;
              Tensor tensor = device.tensors().copyOf(Tensor.of(own, own));
              group.broadcast(tensor, 0);
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(3, 3);
              Tensor integers = device.tensors().copyOf(Tensor.of(DType.INT32, -1, -1));
              group.allReduce(integers);
              assertThat(device.tensors().toHost(integers).toIntArray()).containsExactly(-2, -2);
            });
  }
}
