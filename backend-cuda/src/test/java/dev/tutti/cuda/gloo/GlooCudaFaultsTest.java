package dev.tutti.cuda.gloo;

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
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Gloo operations on CUDA tensors that fail before the device has completed them. */
@Timeout(300)
@Order(1)
class GlooCudaFaultsTest {
  @AutoClose private final FakeMachine machine = new FakeMachine(2);

  private CudaRanks ranks(String direct) {
    return new CudaRanks(machine.cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda))))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", direct);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "1"})
  void anAbortFreesWhoWaitsForTheDevice(String direct) throws Exception {
    CountDownLatch waiting = new CountDownLatch(2);
    ranks(direct)
        .within(Duration.ofSeconds(40))
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f));
              group.barrier();
              CountDownLatch hold = machine.hold(device.currentStream());
              Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
              assertThat(work.await(Duration.ofMillis(20))).isFalse();
              // The abort would also end the call of a rank that has not made it yet.
              waiting.countDown();
              assertThat(waiting.await(60, TimeUnit.SECONDS)).isTrue();
              if (group.rank() == 0) {
                group.abort("enough");
              }
              try {
                assertThatThrownBy(() -> work.await(Until.LONG))
                    .isInstanceOf(TuttiException.class)
                    .hasMessageContaining("enough");
              } finally {
                hold.countDown();
              }
            });
  }

  /** Frees a tensor of a broadcast that timed out but writes to it once its device gets there. */
  @ParameterizedTest
  @ValueSource(strings = {"0", "1"})
  void memoryOfALateResultIsNotUsedAgain(String direct) throws Exception {
    ranks(direct)
        .within(Duration.ofSeconds(1))
        .run(
            2,
            (group, device) -> {
              Arena arena = Arena.ofShared();
              Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, 1000);
              long address = tensor.segment().address();
              group.store().barrier("allocated", 2, Until.LONG);
              boolean isHeld = group.rank() == 1;
              CountDownLatch hold =
                  isHeld ? machine.hold(device.currentStream()) : new CountDownLatch(1);
              Work work = group.broadcast(tensor, 0, CallOptions.ASYNC);
              try {
                if (isHeld) {
                  assertThatThrownBy(work::await).isInstanceOf(TuttiException.class);
                  arena.close();
                  Tensor next = device.tensors().allocate(DType.FLOAT32, 1000);
                  assertThat(next.segment().address()).isNotEqualTo(address);
                }
                group.store().barrier("checked", 2, Until.LONG);
              } finally {
                hold.countDown();
              }
            });
  }

  /** Loses the event after a copy to the host that has not begun. */
  @Test
  void aBlockIsNotUsedAgainBeforeItsCopy() throws Exception {
    CudaDevice device = machine.cuda.device(0);
    ranks("0")
        .onOneDevice()
        .run(
            1,
            (group, own) -> {
              Tensor tensor = own.tensors().copyOf(Tensor.of(7f, 8f));
              group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT).await();
              CountDownLatch hold = machine.hold(own.currentStream());
              machine.fake.failOn("cuEventRecord", 2, 1); // the first one marks the caller's stream
              assertThatThrownBy(() -> group.allReduce(tensor)).isInstanceOf(TuttiException.class);
              PinnedBlock block = Parts.of(own).pinned().allocate(8);
              block.segment().fill((byte) 1);
              hold.countDown();
              assertThat(
                      Parts.of(own).owner().awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Until.LONG)))
                  .isTrue();
              assertThat(block.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(0x01010101);
              Parts.of(own).pinned().free(block);
            });
    assertThat(Parts.of(device).pinned().blocksInUse()).isOne();
  }
}
