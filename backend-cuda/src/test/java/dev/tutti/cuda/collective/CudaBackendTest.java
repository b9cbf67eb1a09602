package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.ForgottenWorks;
import dev.tutti.cuda.OperationChecks;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.DeviceAttribute;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CudaBackendTest {
  private final FakeMachine machine = new FakeMachine(4);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void allOperationsHaveTheirResultsOnDevicesOfTheirOwn() throws Exception {
    for (int size : new int[] {1, 2, 3}) {
      new CudaRanks(cuda)
          .run(size, (group, device) -> new OperationChecks(group, device).all(1, 77));
    }
  }

  @Test
  void allOperationsHaveTheirResultsOnOneDevice() throws Exception {
    new CudaRanks(cuda)
        .onOneDevice()
        .run(2, (group, device) -> new OperationChecks(group, device).all(5, 20_000));
  }

  @Test
  void legacyHandlesServeToo() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_CUDA_SHARING", "ipc")
        .run(2, (group, device) -> new OperationChecks(group, device).all(9));
    assertThat(machine.fake.calls("cuCtxEnablePeerAccess")).isNotEmpty();
  }

  @Test
  void aCollectiveTakesOneLaunchAndOneEvent() throws Exception {
    CountDownLatch ready = new CountDownLatch(2);
    CountDownLatch done = new CountDownLatch(2);
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              CudaRanks.sum(group, tensor).await();
              ready.countDown();
              assertThat(ready.await(60, TimeUnit.SECONDS)).isTrue();
              if (group.rank() == 0) {
                machine.fake.clearCalls();
              }
              done.countDown();
              assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
              CudaRanks.sum(group, tensor).await();
              group.store().barrier("counted", 2, Until.LONG);
              if (group.rank() == 0) {
                assertThat(machine.fake.calls())
                    .hasSize(4)
                    .filteredOn(call -> call.startsWith("cuLaunchKernel"))
                    .hasSize(2);
              }
              group.store().barrier("looked", 2, Until.LONG);
            });
  }

  @Test
  void aListWithATensorThatIsGoneIsRefusedAsAWhole() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor first = device.tensors().copyOf(Tensor.of(1f, 2f));
              Tensor second = device.tensors().copyOf(Tensor.of(5f));
              group.barrier();
              if (group.rank() == 0) {
                machine.fake.clearCalls();
                List<Tensor> gone;
                try (Arena arena = Arena.ofConfined()) {
                  gone = List.of(first, device.tensors().allocate(arena, DType.FLOAT32, 1));
                }
                assertThatThrownBy(
                        () -> group.allReduceCoalesced(gone, ReduceOp.SUM, CallOptions.DEFAULT))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("the memory of float32[1] on " + device + " was freed");
                assertThat(onCurrentStream("cuLaunchKernel")).isEmpty();
              }
              group.store().barrier("refused", 2, Until.LONG);
              if (group.rank() == 1) {
                assertThat(group.failure()).isEmpty();
                assertThat(device.tensors().toHost(second).toFloatArray()).containsExactly(5);
              }
            });
  }

  private List<String> onCurrentStream(String... names) {
    String stream = " 0x" + Long.toHexString(cuda.currentStream().handle());
    return machine.fake.calls(names).stream().filter(call -> call.endsWith(stream)).toList();
  }

  @Test
  void aListOfWhichAPartWasLaunchedFailsTheGroup() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor first = device.tensors().copyOf(Tensor.of(1f, 2f));
              Tensor second = device.tensors().copyOf(Tensor.of(5f));
              group.barrier();
              group.store().barrier("through", 2, Until.LONG);
              if (group.rank() == 0) {
                machine.fake.clearCalls();
                machine.fake.failOn("cuLaunchKernel", 2, 1);
                assertThatThrownBy(
                        () ->
                            group.allReduceCoalesced(
                                List.of(first, second), ReduceOp.SUM, CallOptions.DEFAULT))
                    .hasStackTraceContaining("cuLaunchKernel failed");
                assertThat(onCurrentStream("cuLaunchKernel", "cuEventRecord"))
                    .as("the part that was launched is followed")
                    .hasSize(3)
                    .last()
                    .asString()
                    .startsWith("cuEventRecord");
              }
              Until.holds("the failure", () -> group.failure().isPresent());
              group.store().barrier("failed", 2, Until.LONG);
            });
  }

  @Test
  void aRankThatDoesNotComeIsNamed() throws Exception {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    new CudaRanks(cuda)
        .within(Duration.ofMillis(500))
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              if (group.rank() == 0) {
                // The call throws if its thread stands still until the deadline.
                failure.set(catchThrowable(() -> CudaRanks.sum(group, tensor).await()));
              } else {
                Until.holds("the failure", () -> group.failure().isPresent());
                assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
                    .isInstanceOf(TuttiException.class);
              }
            });
    assertThat(failure.get())
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("rank 1");
    // The devices are still usable.
    new CudaRanks(cuda).run(2, (group, device) -> new OperationChecks(group, device).all(3));
  }

  @Test
  void anAbortEndsKernels() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              if (group.rank() == 0) {
                Work work = CudaRanks.sum(group, tensor);
                group.abort("enough");
                assertThatThrownBy(work::await)
                    .isInstanceOf(TuttiException.class)
                    .isNotInstanceOf(CollectiveTimeoutException.class);
                Until.holds("the end of the kernel", device.currentStream()::isIdle);
              } else {
                Until.holds("the failure", () -> group.failure().isPresent());
              }
            });
  }

  @Test
  void tensorsOfAnotherDeviceAreRefused() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              CudaDevice other = cuda.device(3);
              Tensor tensor = other.tensors().allocate(DType.FLOAT32, 2);
              assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
                  .hasStackTraceContaining("the group uses cuda:" + group.rank() + " on this rank");
              assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("tensor is on cpu");
              new OperationChecks(group, device).all(2);
            });
  }

  @Test
  void memoryThatWasFreedIsRefused() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor freed;
              try (Arena arena = Arena.ofShared()) {
                freed = device.tensors().allocate(arena, DType.FLOAT32, 8);
              }
              assertThatThrownBy(() -> group.allReduce(freed, ReduceOp.SUM))
                  .hasStackTraceContaining("the memory of float32[8] on " + device + " was freed");
              new OperationChecks(group, device).all(2);
            });
  }

  @Test
  void whatIsCachedMakesRoomForANewGroup() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              try (Arena arena = Arena.ofShared()) {
                Tensor _ = device.tensors().allocate(arena, DType.UINT8, 64 << 20);
              }
              group.store().barrier("cached", 2, Duration.ofMinutes(1));
              if (group.rank() == 0) {
                machine.fake.memory().setCapacity(machine.fake.memory().used(0));
              }
              group.store().barrier("full", 2, Duration.ofMinutes(1));
              new OperationChecks(group.split(0, 0).orElseThrow(), device).all(2);
            });
  }

  /** Creating a stream may wait for a kernel that waits for a message of another group. */
  @Test
  void messagesOfManyGroupsMakeNoStreams() throws Exception {
    new CudaRanks(cuda)
        .run(
            4,
            (group, device) -> {
              List<ProcessGroup> groups = new ArrayList<>();
              for (int g = 0; g < 4; g++) {
                groups.add(group.subgroup(List.of(0, 1, 2, 3)).orElseThrow());
              }
              group.store().barrier("made", 4, Until.LONG);
              machine.fake.clearCalls();
              for (ProcessGroup each : groups) {
                exchange(each, device);
              }
              assertThat(machine.fake.calls("cuStreamCreateWithPriority")).isEmpty();
              group.store().barrier("looked", 4, Until.LONG);
              groups.forEach(ProcessGroup::close);
            });
  }

  /** Sends to each rank and receives from each. */
  private static void exchange(ProcessGroup group, CudaDevice device) {
    Tensor own = device.tensors().copyOf(Tensor.of(group.rank() + 1f));
    List<Work> works = new ArrayList<>();
    List<Tensor> received = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()) {
        received.add(device.tensors().allocate(DType.FLOAT32, 1));
        works.add(group.recv(received.getLast(), r, 0, CallOptions.ASYNC));
        works.add(group.send(own, r, 0, CallOptions.ASYNC));
      }
    }
    works.forEach(Work::await);
    double sum =
        received.stream()
            .mapToDouble(each -> device.tensors().toHost(each).toFloatArray()[0])
            .sum();
    assertThat(sum).isEqualTo(10 - (group.rank() + 1));
  }

  @Test
  void aMessageOfAnotherSizeFailsBothSides() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, 4 + group.rank());
              assertThatThrownBy(
                      () -> {
                        if (group.rank() == 0) {
                          group.send(tensor, 1, 7, CallOptions.DEFAULT).await();
                        } else {
                          group.recv(tensor, 0, 7, CallOptions.DEFAULT).await();
                        }
                      })
                  .isInstanceOf(TuttiException.class)
                  .hasStackTraceContaining("16 bytes with tag 7 arrived for a tensor of 20 bytes");
            });
  }

  @Test
  void operationsInPartsTakeOneEvent() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              List<Tensor> tensors = new ArrayList<>();
              for (int i = 0; i < 5; i++) {
                tensors.add(device.tensors().copyOf(Tensor.of(1f, i)));
              }
              for (int round = 0; round < 3; round++) {
                group.allReduceCoalesced(tensors, ReduceOp.SUM, CallOptions.DEFAULT).await();
              }
              group.barrier();
              int most = 8; // of 15 parts; the lane's last one, and what copies left
              assertThat(Parts.of(device).events().inUse()).isLessThanOrEqualTo(most);
            });
  }

  @ParameterizedTest
  @CsvSource({"0, true", "1, false"})
  void multicastIsNotReportedWhereItIsSwitchedOff(String disabled, boolean reported)
      throws Exception {
    new CudaRanks(cuda)
        .with("TORCH_SYMM_MEM_DISABLE_MULTICAST", disabled)
        .run(
            2,
            (group, device) -> {
              try (var memory = group.allocateSymmetric(100)) {
                assertThat(memory.hasMulticast()).isEqualTo(reported);
                group.barrier();
              }
            });
  }

  @Test
  void multicastIsReportedOnly() throws Exception {
    machine.fake.setAttribute(DeviceAttribute.MULTICAST, 0);
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              try (var memory = group.allocateSymmetric(100)) {
                assertThat(memory.hasMulticast()).isFalse();
                group.barrier();
              }
            });
  }

  @Test
  void nothingHoldsCollectivesThatHaveEnded() throws Exception {
    new CudaRanks(cuda).run(2, ForgottenWorks::check);
  }
}
