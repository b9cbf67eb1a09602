package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.Warnings;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.share.CounterFile;
import java.lang.foreign.Arena;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Shares tensors within a process, which the fake driver allows. */
@Isolated("reads the log")
class CudaIpcTest extends IpcPair {
  @Test
  void theOtherDevicesOfTheProcessAreLetIn() {
    String letIn =
        "cuCtxEnablePeerAccess 0x" + Long.toHexString(Parts.of(device).context().handle());
    assertThat(tensor().numel()).isEqualTo(3);
    assertThat(fake.calls("cuCtxEnablePeerAccess")).isEmpty();
    assertThat(machine.cuda.device(0).index()).isZero();
    assertThat(fake.calls("cuCtxEnablePeerAccess")).containsExactly(letIn);
    assertThat(producer.allocate(machine.cuda.device(0), DType.INT8, 1).numel()).isOne();
    assertThat(fake.calls("cuCtxEnablePeerAccess")).hasSize(2).doesNotHaveDuplicates();
  }

  @Test
  void aDeviceThatCannotBeLetInKeepsNoTensorFromBeingShared() {
    assertThat(machine.cuda.device(0).index()).isZero();
    fake.failOn("cuCtxEnablePeerAccess", 1, 711);
    ReceivedTensor received = consumer.open(producer.share(tensor()).handle());
    assertThat(device.tensors().toHost(received.tensor()).toFloatArray()).containsExactly(1, 2, 3);
    received.close();
    assertThat(tensor().numel()).isEqualTo(3);
    assertThat(fake.calls("cuCtxEnablePeerAccess")).hasSize(1);
  }

  @Test
  void aDeviceThatCannotBeLetInIsOpened() {
    assertThat(tensor().numel()).isEqualTo(3);
    fake.failOn("cuCtxEnablePeerAccess", 1, CudaException.OUT_OF_MEMORY);
    assertThat(machine.cuda.device(0).index()).isZero();
    assertThat(tensor().numel()).isEqualTo(3);
  }

  @Test
  void aTensorIsSeenAndItsMemoryStaysUntilItIsClosed() {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 1, 2, 3, 4, 5, 6).view(3, 2);
    SharedTensor shared = producer.share(tensor.narrow(0, 1, 2));
    assertThat(shared.isOpen()).isFalse();
    ReceivedTensor received = consumer.open(shared.handle());
    assertThat(shared.isOpen()).isTrue();
    assertThat(received.tensor().shape()).containsExactly(2, 2);
    assertThat(received.tensor().device()).isEqualTo(device.device());
    assertThat(device.tensors().toHost(received.tensor()).toFloatArray())
        .containsExactly(3, 4, 5, 6);
    arena.close();
    producer.collect();
    assertThat(producer.pendingReleaseCount()).isOne();
    assertThat(used()).isEqualTo(512);
    assertThat(device.tensors().toHost(received.tensor()).toFloatArray())
        .containsExactly(3, 4, 5, 6);
    Tensor dead = received.tensor();
    received.close();
    received.close();
    assertThat(dead.segment().scope().isAlive()).isFalse();
    assertThatThrownBy(received::tensor).isInstanceOf(IllegalStateException.class);
    assertThat(shared.isReturned()).isTrue();
    assertThat(producer.pendingReleaseCount()).isZero();
    assertThat(producer.outstanding()).isZero();
    assertThat(used()).isZero();
    assertThat(fake.living("opened memory")).isZero();
  }

  @Test
  void theConsumersStreamWaitsForTheProducers() {
    Tensor tensor = tensor();
    CudaStream stream = device.poolStream();
    CountDownLatch held = machine.hold(stream);
    SharedTensor shared;
    try (CudaStream.Scope _ = stream.use()) {
      shared = producer.share(tensor);
    }
    CudaStream own = device.poolStream();
    ReceivedTensor received;
    try (CudaStream.Scope _ = own.use()) {
      received = consumer.open(shared.handle());
    }
    assertThat(own.isIdle()).isFalse();
    held.countDown();
    received.close();
    assertThat(own.isIdle()).isTrue();
  }

  @Test
  void wordsAreUsedAgainAndFilesGo() {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 1);
    for (int i = 0; i < 10; i++) {
      consumer.open(producer.share(tensor).handle()).close();
    }
    List<SharedTensor> all = new ArrayList<>();
    for (int i = 0; i < CounterFile.SLOTS + 1; i++) {
      all.add(producer.share(tensor));
    }
    assertThat(producer.sender().counterFiles()).isEqualTo(2);
    assertThat(producer.outstanding()).isEqualTo(CounterFile.SLOTS + 1);
    assertThat(fake.calls("cuIpcGetEventHandle")).hasSize(IpcEvents.LIMIT);
    ReceivedTensor beyond = consumer.open(all.get(CounterFile.SLOTS).handle());
    assertThat(device.tensors().toHost(beyond.tensor()).toFloatArray()).containsExactly(1);
    beyond.close();
    all.forEach(SharedTensor::close);
    assertThat(producer.outstanding()).isZero();
    assertThat(producer.sender().counterFiles()).isOne();
    arena.close();
    assertThat(used()).isZero();
    producer.close();
    consumer.close();
    assertThat(Parts.of(machine.cuda).sharing()).isEmpty();
    assertThatThrownBy(() -> producer.share(tensor)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> consumer.open(all.getFirst().handle()))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void withoutAnEventTheHostWaitsForTheStream() throws Exception {
    Tensor tensor = tensor();
    List<SharedTensor> all = new ArrayList<>();
    for (int i = 0; i < IpcEvents.LIMIT; i++) {
      all.add(producer.share(tensor));
    }
    CudaStream stream = device.poolStream();
    CountDownLatch held = machine.hold(stream);
    Thread sharing =
        Thread.ofPlatform()
            .start(
                () -> {
                  try (CudaStream.Scope _ = stream.use()) {
                    all.add(producer.share(tensor));
                  }
                });
    Until.holds("the wait", () -> sharing.getState() == Thread.State.TIMED_WAITING);
    assertThat(all).hasSize(IpcEvents.LIMIT);
    held.countDown();
    sharing.join();
    assertThat(all).hasSize(IpcEvents.LIMIT + 1);
  }

  @Test
  void aFullDeviceGetsBackWhatWasReturned() {
    fake.memory().setCapacity(fake.memory().used() + (16 << 20));
    Arena arena = Arena.ofShared();
    Tensor tensor = producer.allocate(device, arena, DType.UINT8, 12 << 20);
    SharedTensor shared = producer.share(tensor);
    arena.close();
    assertThat(producer.pendingReleaseCount()).isOne();
    assertThatThrownBy(() -> device.tensors().allocate(DType.UINT8, 14 << 20))
        .isInstanceOf(CudaException.class);
    ReceivedTensor received = consumer.open(shared.handle());
    received.close();
    assertThat(producer.pendingReleaseCount()).isOne();
    assertThat(device.tensors().allocate(DType.UINT8, 14 << 20).numel()).isEqualTo(14 << 20);
    assertThat(producer.pendingReleaseCount()).isZero();
  }

  @Test
  void aThousandBlocksInLimboAreWarnedOfOnce() {
    long thread = Thread.currentThread().threadId();
    try (Warnings warnings =
        new Warnings(CudaIpc.class, line -> line.getLongThreadID() == thread)) {
      List<SharedTensor> all = new ArrayList<>();
      for (int i = 0; i < IpcSender.WARN_LIMBO; i++) {
        all.add(freed());
      }
      assertThat(producer.pendingReleaseCount()).isEqualTo(1000);
      assertThat(warnings.messages()).isEmpty();
      all.add(freed());
      assertThat(producer.pendingReleaseCount()).isEqualTo(1001);
      assertThat(warnings.messages())
          .containsExactly(
              "other processes still use more than 1000 blocks of device memory that were freed"
                  + " here; the memory is released when they close the tensors that they opened");
      all.add(freed());
      assertThat(warnings.messages()).hasSize(1);
      all.forEach(SharedTensor::close);
      assertThat(producer.pendingReleaseCount()).isZero();
      assertThat(used()).isZero();
    }
  }

  /** Shares a tensor and frees it at once. */
  private SharedTensor freed() {
    try (Arena arena = Arena.ofShared()) {
      return producer.share(producer.allocate(device, arena, DType.UINT8, 1));
    }
  }

  @Test
  void collectSaysWhetherMemoryWasFreed() {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 4);
    SharedTensor shared = producer.share(tensor);
    assertThat(producer.collect()).as("nothing came back").isFalse();
    ReceivedTensor received = consumer.open(shared.handle());
    arena.close();
    assertThat(producer.collect()).as("it is open").isFalse();
    received.close();
    assertThat(producer.collect()).as("it was closed").isTrue();
    assertThat(used()).isZero();
    assertThat(producer.collect()).as("nothing is left").isFalse();
    Tensor owned = tensor();
    try {
      SharedTensor kept = producer.share(owned);
      consumer.open(kept.handle()).close();
      assertThat(producer.collect()).as("its owner has it").isFalse();
    } finally {
      Reference.reachabilityFence(owned);
    }
  }

  @Test
  void theEndOfSharingIsDefined() {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 4);
    SharedTensor shared = producer.share(tensor);
    SharedTensor unopened = producer.share(tensor);
    ReceivedTensor received = consumer.open(shared.handle());
    assertThatThrownBy(consumer::close).isInstanceOf(IllegalStateException.class);
    assertThat(producer.awaitReturned(Duration.ofMillis(5))).isFalse();
    producer.close();
    refused(Reason.USED_UP, () -> consumer.open(unopened.handle()));
    assertThat(device.tensors().toHost(received.tensor()).toFloatArray()).containsExactly(4);
    arena.close();
    assertThat(producer.pendingReleaseCount()).isOne();
    received.close();
    assertThat(producer.awaitReturned(Duration.ofSeconds(60))).isTrue();
    assertThat(used()).isZero();
    assertThat(producer.sender().isDisposed()).isTrue();
    assertThat(Parts.of(machine.cuda).sharing()).hasSize(1);
  }

  @Test
  void anotherStreamCanBeNamedForWhatIsShared() {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 4);
    CudaStream other = device.poolStream();
    device.tensors().useOn(tensor, other);
    CountDownLatch hold = machine.hold(other);
    arena.close();
    assertThat(tensor().segment().address()).isNotEqualTo(tensor.segment().address());
    hold.countDown();
  }
}
