package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.cuda.provider.CudaDeviceTensors;
import dev.tutti.spi.DeviceStream;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.lang.ref.WeakReference;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CudaTensorsTest {
  private final FakeMachine machine = new FakeMachine(2);
  private final Cuda cuda = machine.cuda;
  private final CudaTensors tensors = cuda.device(0).tensors();

  @AfterEach
  void close() {
    machine.close();
  }

  @Test
  void aTensorKnowsItsDevice() {
    Tensor tensor = tensors.allocate(DType.BFLOAT16, 3, 5);
    assertThat(tensor.device()).isEqualTo(Device.cuda(0));
    assertThat(tensor.shape()).containsExactly(3, 5);
    assertThat(tensor.isContiguous()).isTrue();
    assertThat(tensor.segment().byteSize()).isEqualTo(30);
    assertThatThrownBy(() -> tensor.getDouble(0)).isInstanceOf(IllegalStateException.class);
    assertThat(cuda.device(1).tensors().allocate(DType.INT8).device()).isEqualTo(Device.cuda(1));
    assertThat(tensors.allocate(DType.INT8, 0).numel()).isZero();
  }

  @Test
  void dataGoesToTheDeviceAndBack() {
    Tensor host = Tensor.of(1f, 2f, 3f, 4f);
    Tensor device = tensors.copyOf(host);
    host.fill(0);
    assertThat(tensors.toHost(device).toFloatArray()).containsExactly(1, 2, 3, 4);
    Tensor transposed = Tensor.of(1f, 2f, 3f, 4f).view(2, 2).transpose(0, 1);
    assertThat(tensors.toHost(tensors.copyOf(transposed)).toFloatArray())
        .containsExactly(1, 3, 2, 4);
  }

  @Test
  void theProviderCopiesToTheHostAndBack() {
    DeviceTensors provider = new CudaDeviceTensors(() -> cuda);
    Tensor device = cuda.device(1).tensors().allocate(DType.FLOAT32, 2, 2);
    Tensor host = Tensor.of(1f, 2f, 3f, 4f);
    provider.copyFromHost(device, host);
    host.fill(0);
    provider.copyToHost(host, device);
    assertThat(host.toFloatArray()).containsExactly(1, 2, 3, 4);
    assertThat(DeviceTensors.find("cuda")).get().isInstanceOf(CudaDeviceTensors.class);
    assertThat(DeviceTensors.find("moon")).isEmpty();
  }

  @Test
  void aFullDeviceGetsBackTensorsThatNobodyReaches() {
    machine.fake.memory().setCapacity(100 << 20);
    for (int i = 0; i < 20; i++) {
      Tensor tensor = tensors.allocate(DType.UINT8, 40 << 20);
      assertThat(machine.fake.memory().used(0)).isLessThanOrEqualTo(100 << 20);
      assertThat(tensor.numel()).isEqualTo(40 << 20);
    }
  }

  @Test
  void largeTensorsGoInChunks() {
    int length = (int) (3 * HostCopies.CHUNK / Integer.BYTES) + 7;
    int[] numbers = new int[length];
    for (int i = 0; i < length; i++) {
      numbers[i] = 31 * i;
    }
    Tensor device = tensors.copyOf(Tensor.of(numbers));
    assertThat(machine.fake.calls("cuMemcpyAsync")).hasSize(4);
    Tensor back = tensors.toHost(device);
    assertThat(machine.fake.calls("cuMemcpyAsync")).hasSize(8);
    for (int i = 0; i < length; i += 1021) {
      assertThat(back.getLong(i)).isEqualTo(numbers[i]);
    }
    assertThat(back.getLong(length - 1)).isEqualTo(numbers[length - 1]);
    assertThat(cuda.device(0).pinned().blocksInUse()).isZero();
    assertThat(cuda.device(0).pinned().allocatedBytes())
        .as("two chunks at once, of each size")
        .isLessThanOrEqualTo(3 * HostCopies.CHUNK + (64 << 10));
  }

  @Test
  void aCopyThatFailsLosesNothing() {
    Tensor host = Tensor.of(1f);
    Tensor device = tensors.allocate(DType.FLOAT32, 1);
    machine.fake.failOn("cuMemcpyAsync", 1, 1);
    assertThatThrownBy(() -> tensors.copyFromHost(device, host)).isInstanceOf(CudaException.class);
    machine.fake.failOn("cuMemcpyAsync", 1, 1);
    assertThatThrownBy(() -> tensors.toHost(device)).isInstanceOf(CudaException.class);
    assertThat(cuda.device(0).pinned().blocksInUse()).isZero();
  }

  @Test
  void copiesFollowTheCurrentStream() {
    CudaStream stream = cuda.device(0).poolStream();
    CountDownLatch held = machine.hold(stream);
    try (CudaStream.Scope _ = stream.use()) {
      Tensor host = Tensor.of(7f);
      Tensor device = tensors.copyOf(host);
      host.fill(8);
      assertThat(stream.isIdle()).as("whether the copy waits").isFalse();
      held.countDown();
      assertThat(tensors.toHost(device).toFloatArray()).containsExactly(7);
    }
  }

  @Test
  void copiesInATakenStreamWaitForNothingThatComesLater() throws Exception {
    DeviceTensors provider = new CudaDeviceTensors(() -> cuda);
    CudaStream training = cuda.device(0).poolStream();
    int chunks = 5;
    Tensor host = Tensor.allocate(DType.INT8, chunks * HostCopies.CHUNK).fill(1);
    machine.fake.races().find();
    DeviceStream beside = provider.takeStream(Device.cuda(0)).orElseThrow();
    CountDownLatch before;
    CountDownLatch after;
    Tensor device;
    try (CudaStream.Scope _ = training.use()) {
      device = tensors.copyOf(host);
      // The first copy's chunks are free again.
      Until.holds("the copy to the device", training::isIdle);
      before = machine.hold(training);
      provider.zero(device);
      beside.waitFor(provider.currentStream(Device.cuda(0)));
      after = machine.hold(training);
    }
    FutureTask<Void> copy =
        new FutureTask<>(
            () -> {
              DeviceStream _ = beside.makeCurrent();
              provider.copyToHost(host, device);
              return null;
            });
    Thread.ofPlatform().start(copy);
    assertThat(copy.isDone()).isFalse();
    assertThat(host.getLong(0)).isEqualTo(1);
    before.countDown();
    copy.get();
    assertThat(host.segment().mismatch(Tensor.allocate(DType.INT8, host.numel()).segment()))
        .isEqualTo(-1);
    assertThat(training.isIdle()).isFalse();
    assertThat(machine.fake.races().found()).isEmpty();
    assertThat(cuda.device(0).pinned().allocatedBytes())
        .as("two chunks at once")
        .isLessThanOrEqualTo(2 * HostCopies.CHUNK + (64 << 10));
    after.countDown();
    provider.giveStream(beside);
  }

  @Test
  void copiesThroughTheHostAreNotRecorded() {
    CudaStream stream = cuda.device(0).poolStream();
    try (CudaStream.Scope _ = stream.use()) {
      Tensor host = Tensor.of(7f);
      Tensor device = tensors.copyOf(host);
      GraphCalls graphs = machine.fake.driver().graphs();
      graphs.beginCapture(stream.handle());
      assertThatThrownBy(() -> tensors.copyFromHost(device, host))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is being captured into a graph");
      assertThatThrownBy(() -> tensors.toHost(device)).isInstanceOf(IllegalStateException.class);
      long graph = graphs.endCapture(stream.handle());
      machine.fake.clearCalls();
      long executable = graphs.instantiate(graph);
      graphs.launch(executable, stream.handle());
      assertThat(tensors.toHost(device).toFloatArray()).containsExactly(7);
      assertThat(cuda.device(0).pinned().blocksInUse()).isZero();
      graphs.destroy(graph);
      graphs.destroyExecutable(executable);
    }
  }

  private void keepsWhatIsUsedOn(CudaStream other) {
    CountDownLatch held = machine.hold(other);
    long address;
    try (Arena arena = Arena.ofConfined()) {
      Tensor tensor = tensors.allocate(arena, DType.FLOAT32, 10);
      address = tensor.segment().address();
      tensors.useOn(tensor, other);
    }
    assertThat(tensors.usedBytes()).isZero();
    try (Arena arena = Arena.ofConfined()) {
      Tensor next = tensors.allocate(arena, DType.FLOAT32, 10);
      assertThat(next.segment().address()).isNotEqualTo(address);
    }
    held.countDown();
    Until.holds("the other stream", other::isIdle);
    try (Arena arena = Arena.ofConfined()) {
      Tensor next = tensors.allocate(arena, DType.FLOAT32, 10);
      assertThat(next.segment().address()).isEqualTo(address);
    }
  }

  @Test
  void memoryThatAnotherDeviceUsesIsKept() {
    keepsWhatIsUsedOn(cuda.device(1).poolStream());
    assertThat(cuda.device(1).events().inUse()).isZero();
  }

  @Test
  void anArenaFreesItsTensors() {
    try (Arena arena = Arena.ofConfined()) {
      tensors.allocate(arena, DType.FLOAT64, 100);
      assertThat(tensors.usedBytes()).isEqualTo(1024);
    }
    assertThat(tensors.usedBytes()).isZero();
    assertThat(tensors.reservedBytes()).isEqualTo(2 << 20);
    tensors.releaseCached();
    assertThat(tensors.reservedBytes()).isZero();
  }

  @Test
  void devicesReachEachOthersMemory() {
    Tensor before = tensors.copyOf(Tensor.of(1f, 2f));
    CudaTensors others = cuda.device(1).tensors();
    Tensor target = others.allocate(DType.FLOAT32, 2);
    Tensor after = tensors.copyOf(Tensor.of(3f, 4f));
    cuda.device(0).currentStream().await(Until.LONG);
    for (Tensor source : new Tensor[] {before, after}) {
      cuda.device(1).context().enter();
      machine
          .fake
          .driver()
          .streams()
          .copy(target.segment().address(), source.segment().address(), 8, 0);
      assertThat(others.toHost(target).toFloatArray())
          .isEqualTo(tensors.toHost(source).toFloatArray());
    }
    cuda.device(0).context().enter();
    machine
        .fake
        .driver()
        .streams()
        .copy(before.segment().address(), target.segment().address(), 8, 0);
    assertThat(tensors.toHost(before).toFloatArray()).containsExactly(3, 4);
  }

  @Test
  void aTensorThatNobodyHasIsFreed() {
    assertThat(tensors.allocate(DType.FLOAT32, 1000).numel()).isEqualTo(1000);
    Until.holds(
        "the collector",
        () -> {
          System.gc();
          return tensors.usedBytes() == 0;
        });
  }

  @Test
  void memoryThatAnotherStreamUsesIsKept() {
    keepsWhatIsUsedOn(cuda.device(0).poolStream());
  }

  @Test
  void foreignMemoryIsWrappedAfterAnInspection() {
    cuda.device(0).context().enter();
    long address = machine.fake.driver().memory().allocate(4096);
    Object owner = new Object();
    Tensor tensor = tensors.wrap(address + 96, owner, DType.FLOAT32, 1000);
    assertThat(tensor.segment().address()).isEqualTo(address + 96);
    assertThatThrownBy(() -> tensors.wrap(address + 96, owner, DType.FLOAT32, 1001))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has only 4000 bytes left in its allocation, not 4004");
    assertThatThrownBy(() -> cuda.device(1).tensors().wrap(address, owner, DType.INT8, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is not memory of cuda:1 but of cuda:0");
    long host = Tensor.of(1f).segment().address();
    assertThatThrownBy(() -> tensors.wrap(host, owner, DType.FLOAT32, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("of kind UNKNOWN");
    assertThatThrownBy(() -> tensors.useOn(tensor, cuda.device(0).poolStream()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("was not allocated here");
    machine.fake.driver().memory().free(address);
  }

  @Test
  void theOwnerOfForeignMemoryLivesAsLongAsTheTensor() {
    cuda.device(0).context().enter();
    long address = machine.fake.driver().memory().allocate(512);
    Object[] owner = {new Object()};
    WeakReference<Object> seen = new WeakReference<>(owner[0]);
    Tensor[] tensor = {tensors.wrap(address, owner[0], DType.INT8, 1)};
    owner[0] = null;
    System.gc();
    assertThat(seen.get()).isNotNull();
    assertThat(tensor[0].numel()).isOne();
    tensor[0] = null;
    Until.holds(
        "the collector",
        () -> {
          System.gc();
          return seen.get() == null;
        });
    machine.fake.driver().memory().free(address);
  }

  @Test
  void tensorsThatDoNotFitAreRefused() {
    Tensor device = tensors.allocate(DType.FLOAT32, 4);
    Tensor elsewhere = cuda.device(1).tensors().allocate(DType.FLOAT32, 4);
    assertThatThrownBy(() -> tensors.copyFromHost(device, Tensor.of(1.0)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> tensors.copyFromHost(device, Tensor.of(1f)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> tensors.copyFromHost(device, device))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dense host tensor");
    assertThatThrownBy(() -> tensors.toHost(elsewhere))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is not on cuda:0");
    assertThatThrownBy(() -> tensors.toHost(Tensor.of(1f)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> tensors.allocate(DType.FLOAT32, -1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> tensors.allocate(DType.FLOAT32, Long.MAX_VALUE, 2))
        .isInstanceOf(ArithmeticException.class);
  }
}
