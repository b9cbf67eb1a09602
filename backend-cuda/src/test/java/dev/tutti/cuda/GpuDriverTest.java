package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.DType;
import dev.tutti.StreamBlock;
import dev.tutti.Tensor;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.driver.PointerInfo;
import dev.tutti.cuda.driver.VirtualMemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import dev.tutti.cuda.memory.PinnedBlock;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Isolated;
import org.opentest4j.TestAbortedException;

/** Tests the adapter on a GPU; contexts belong to threads. */
@ExtendWith(Gpu.class)
@SuppressWarnings("NullAway.Init")
@Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
@Isolated("counts the descriptors of the process")
class GpuDriverTest {
  private Cuda cuda;
  private CudaDevice device;
  private CudaDriver driver;

  @BeforeEach
  @Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
  void open() {
    cuda = Cuda.get();
    device = cuda.device(0);
    device.context().enter();
    driver = device.context().driver();
  }

  private void await(CudaStream stream) {
    stream.await(Until.LONG);
  }

  @Test
  void devicesDescribeThemselves() {
    assertThat(driver.devices().driverVersion())
        .isGreaterThanOrEqualTo(CudaDrivers.REQUIRED_VERSION);
    assertThat(device.name()).isNotBlank();
    assertThat(device.computeCapability()).isGreaterThanOrEqualTo(80);
    assertThat(driver.devices().pciBusId(0)).matches("[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:.*");
    assertThat(driver.devices().totalBytes(0)).isGreaterThan(1L << 30);
    assertThat(Parts.of(cuda).findings())
        .hasSizeGreaterThan(cuda.deviceCount())
        .anyMatch(line -> line.startsWith("cuda:0 " + device.name()));
    assertThatThrownBy(() -> driver.devices().name(999))
        .isInstanceOf(CudaException.class)
        .hasMessage("cuDeviceGet of device 999 failed: CUDA_ERROR_INVALID_DEVICE (101)");
  }

  @Test
  void aKernelChangesATensor() {
    long module = Gpu.loadKernels(device);
    long add = driver.kernels().function(module, Gpu.ADD);
    CudaStream stream = device.poolStream();
    try (CudaStream.Scope _ = stream.use()) {
      float[] numbers = new float[1000];
      numbers[999] = 5;
      Tensor tensor = device.tensors().copyOf(Tensor.of(numbers));
      LaunchParameters parameters = new LaunchParameters(3);
      parameters.set(0, tensor.segment().address());
      parameters.set(1, numbers.length);
      parameters.set(2, 2.5f);
      parameters.launch(driver.kernels(), add, 8, 128, stream.handle());
      float[] result = device.tensors().toHost(tensor).toFloatArray();
      assertThat(result[0]).isEqualTo(2.5f);
      assertThat(result[999]).isEqualTo(7.5f);
    }
    driver.kernels().unload(module);
    assertThatThrownBy(() -> driver.kernels().function(module, Gpu.ADD))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aBadModuleIsRefused() {
    assertThatThrownBy(() -> driver.kernels().load(new byte[] {1, 2, 3, 4, 0, 0, 0, 0}))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuModuleLoadData of 8 bytes failed: CUDA_ERROR_");
  }

  @Test
  void largeTensorsGoToTheDeviceAndBack() {
    int length = (int) (3 * HostCopies.CHUNK / Integer.BYTES) + 7;
    int[] numbers = new int[length];
    for (int i = 0; i < length; i++) {
      numbers[i] = 31 * i;
    }
    Tensor tensor = device.tensors().copyOf(Tensor.of(numbers));
    Tensor back = device.tensors().toHost(tensor);
    assertThat(back.segment().mismatch(Tensor.of(numbers).segment())).isEqualTo(-1);
  }

  @Test
  void eventsOrderStreamsAndMeasure() {
    CudaStream first = device.poolStream();
    CudaStream second = device.poolStream();
    PinnedBlock words = device.pinned().allocate(8);
    words.segment().fill((byte) 0);
    driver.streams().waitValue(first.handle(), words.address(), 1);
    CudaEvent after = first.record();
    second.waitFor(after);
    CudaEvent last = second.record();
    assertThat(last.awaitReached(System.nanoTime() + 50_000_000)).isFalse();
    assertThat(first.isIdle()).isFalse();
    words.segment().set(ValueLayout.JAVA_INT, 0, 1);
    assertThat(last.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    driver.streams().writeValue(first.handle(), words.address() + 4, 77);
    await(first);
    assertThat(words.segment().get(ValueLayout.JAVA_INT, 4)).isEqualTo(77);
    device.pinned().free(words);

    long start = driver.events().create(EventCalls.Purpose.TIMING);
    long end = driver.events().create(EventCalls.Purpose.TIMING);
    driver.events().record(start, first.handle());
    driver.events().record(end, first.handle());
    await(first);
    assertThat(driver.events().elapsedMillis(start, end)).isBetween(0f, 1000f);
    driver.events().destroy(start);
    driver.events().destroy(end);
  }

  @Test
  void addressesAreKnown() {
    Tensor tensor = device.tensors().allocate(DType.INT8, 3 << 20);
    PointerInfo info = driver.memory().pointerInfo(tensor.segment().address() + 100);
    assertThat(info.kind()).isEqualTo(PointerInfo.MemoryKind.DEVICE);
    assertThat(info.device()).isZero();
    assertThat(info.rangeBytes()).isGreaterThanOrEqualTo(3 << 20);
    PinnedBlock pinned = device.pinned().allocate(8192);
    assertThat(driver.memory().pointerInfo(pinned.address()).kind())
        .isEqualTo(PointerInfo.MemoryKind.HOST);
    device.pinned().free(pinned);
    assertThat(driver.memory().pointerInfo(Tensor.of(1f).segment().address()))
        .isEqualTo(PointerInfo.NONE);
    Tensor wrapped =
        device.tensors().wrap(tensor.segment().address(), tensor, DType.FLOAT32, 1 << 10);
    device.tensors().copyFromHost(wrapped, Tensor.allocate(DType.FLOAT32, 1 << 10).fill(3));
    assertThat(device.tensors().toHost(wrapped).getDouble(1023)).isEqualTo(3);
  }

  @Test
  void aFullDeviceIsReportedWithTheNumbers() {
    long total = driver.memory().room().total();
    assertThatThrownBy(() -> device.tensors().allocate(DType.INT8, 2 * total))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue())
        .hasMessageContaining("; of " + total + " bytes, ");
    assertThat(device.tensors().allocate(DType.INT8, 1 << 20).numel()).isEqualTo(1 << 20);
  }

  @Test
  void physicalMemoryIsSharedByADescriptor() throws IOException {
    VirtualMemoryCalls memory = driver.virtualMemory();
    Properties properties = new Properties(0, Share.POSIX_FD, false);
    long bytes = memory.granularity(properties);
    assertThat(bytes).isGreaterThanOrEqualTo(64 << 10);
    long handle = memory.create(bytes, properties);
    int fd = memory.exportFd(handle);
    assertThat(fd).isGreaterThan(2);
    long imported = memory.importFd(fd);
    Fds.close(fd);
    assertShared(handle, imported, bytes);
  }

  @Test
  void physicalMemoryIsSharedByAFabricHandle() throws IOException {
    assumeThat(driver.devices().attribute(0, DeviceAttribute.FABRIC_HANDLES))
        .as("whether the device reports fabric handles")
        .isNotZero();
    VirtualMemoryCalls memory = driver.virtualMemory();
    Properties properties = new Properties(0, Share.POSIX_FD_AND_FABRIC, false);
    long bytes = memory.granularity(properties);
    long handle;
    try {
      handle = memory.create(bytes, properties);
    } catch (CudaException e) {
      throw new TestAbortedException("this host gives no fabric handles: " + e.getMessage(), e);
    }
    Fds.close(memory.exportFd(handle));
    byte[] fabric = memory.exportFabric(handle);
    assertThat(fabric).hasSize(VirtualMemoryCalls.FABRIC_HANDLE_BYTES);
    assertShared(handle, memory.importFabric(fabric), bytes);
  }

  /** Writes through one handle, reads through the other, and releases both. */
  private void assertShared(long handle, long imported, long bytes) {
    VirtualMemoryCalls memory = driver.virtualMemory();
    long one = memory.reserve(bytes);
    long two = memory.reserve(bytes);
    memory.map(one, bytes, handle);
    memory.allow(one, bytes, 0);
    memory.map(two, bytes, imported);
    memory.allow(two, bytes, 0);
    memory.release(handle);
    memory.release(imported);
    Tensor first = device.tensors().wrap(one, this, DType.INT32, 4);
    Tensor second = device.tensors().wrap(two, this, DType.INT32, 4);
    device.tensors().copyFromHost(first, Tensor.of(1, 2, 3, 4));
    assertThat(device.tensors().toHost(second).getLong(3)).isEqualTo(4);
    memory.unmap(one, bytes);
    memory.unmap(two, bytes);
    memory.freeAddress(one, bytes);
    memory.freeAddress(two, bytes);
  }

  @Test
  void aGraphDoesItsWorkAgain() {
    GraphCalls graphs = driver.graphs();
    long module = Gpu.loadKernels(device);
    long add = driver.kernels().function(module, Gpu.ADD);
    CudaStream stream = device.poolStream();
    try (CudaStream.Scope _ = stream.use()) {
      Tensor tensor = device.tensors().copyOf(Tensor.of(0f));
      LaunchParameters parameters = new LaunchParameters(3);
      parameters.set(0, tensor.segment().address());
      parameters.set(1, 1);
      parameters.set(2, 1f);
      graphs.beginCapture(stream.handle());
      assertThat(stream.isCapturing()).isTrue();
      assertThatThrownBy(() -> new CudaStreamBlockProvider(() -> cuda).block(Until.LONG))
          .isInstanceOf(IllegalStateException.class);
      parameters.launch(driver.kernels(), add, 1, 32, stream.handle());
      long graph = graphs.endCapture(stream.handle());
      long executable = graphs.instantiate(graph);
      for (int i = 0; i < 10; i++) {
        graphs.launch(executable, stream.handle());
      }
      assertThat(device.tensors().toHost(tensor).getDouble(0)).isEqualTo(10);
      graphs.destroyExecutable(executable);
      graphs.destroy(graph);
    }
    driver.kernels().unload(module);
  }

  @Test
  void aStreamOfAnotherLibraryIsGoneBeforeItsCacheIs() {
    int bytes = 64 << 20;
    device.tensors().releaseCached();
    long before = device.tensors().reservedBytes();
    device.context().enter();
    long handle = driver.streams().create(0);
    try (CudaStream.Scope _ = device.wrap(handle).use();
        Arena arena = Arena.ofConfined()) {
      Tensor tensor = device.tensors().allocate(arena, DType.INT8, bytes);
      driver.streams().fill(tensor.segment().address(), (byte) 1, bytes, handle);
    }
    driver.streams().destroy(handle);
    device.tensors().releaseCached();
    assertThat(device.tensors().reservedBytes()).isLessThanOrEqualTo(before);
  }

  @Test
  void memoryIsAllocatedAndFreedWhileAGraphIsRecorded() throws Exception {
    for (int mode : new int[] {GraphCalls.THREAD_LOCAL, GraphCalls.GLOBAL}) {
      recordBesideAllocations(mode);
    }
  }

  private void recordBesideAllocations(int mode) throws Exception {
    CudaTensors tensors = device.tensors();
    CudaStream recorded = device.poolStream();
    CudaStream other = device.poolStream();
    PinnedBlock gate = device.pinned().allocate(4);
    gate.segment().fill((byte) 0);
    device.context().enter();
    driver.streams().waitValue(other.handle(), gate.address(), 1);
    CudaEvent event = other.record();
    try (Arena arena = Arena.ofConfined()) {
      tensors.useOn(tensors.allocate(arena, DType.INT8, 100), other);
    }
    Arena inside = Arena.ofShared();
    tensors.useOn(tensors.allocate(inside, DType.INT8, 100), recorded);
    Tensor source = tensors.copyOf(Tensor.of(7f));
    device.defaultStream().await(Until.LONG);
    try (CudaStream.Scope _ = recorded.use()) {
      Tensor copied = tensors.copyOf(Tensor.of(0f));
      driver.graphs().beginCapture(recorded.handle(), mode);
      assertThat(tensors.allocate(DType.INT8, 40 << 20).numel()).isEqualTo(40 << 20);
      device.pinned().free(device.pinned().allocate(16 << 20));
      inside.close();
      assertThatThrownBy(() -> tensors.copyFromHost(copied, Tensor.of(9f)))
          .isInstanceOf(IllegalStateException.class);
      assertThat(event.isReached()).isFalse();
      CompletableFuture.runAsync(
              () -> {
                try (CudaStream.Scope _ = device.poolStream().use()) {
                  assertThat(tensors.allocate(DType.INT8, 100).numel()).isEqualTo(100);
                  assertThat(tensors.copyOf(Tensor.of(1f)).numel()).isOne();
                }
                assertThat(event.isReached()).isFalse();
                assertThat(recorded.isIdle()).isFalse();
                tensors.releaseCached();
              })
          .get(60, TimeUnit.SECONDS);
      device.context().enter();
      driver
          .streams()
          .copy(copied.segment().address(), source.segment().address(), 4, recorded.handle());
      long graph = driver.graphs().endCapture(recorded.handle());
      long executable = driver.graphs().instantiate(graph);
      driver.graphs().launch(executable, recorded.handle());
      assertThat(tensors.toHost(copied).toFloatArray()).containsExactly(7);
      driver.graphs().destroyExecutable(executable);
      driver.graphs().destroy(graph);
    }
    gate.segment().set(ValueLayout.JAVA_INT, 0, 1);
    assertThat(event.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    device.pinned().free(gate);
    assertThat(tensors.allocate(DType.INT8, 100).numel()).isEqualTo(100);
  }

  @Test
  void anotherProcessOpensMemoryAndEvent() throws Exception {
    long memory = driver.memory().allocate(4096);
    long event = driver.events().create(EventCalls.Purpose.INTERPROCESS);
    CudaStream stream = device.poolStream();
    driver.streams().fill(memory, (byte) 5, 4096, stream.handle());
    driver.events().record(event, stream.handle());
    Process child =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-cp",
                System.getProperty("java.class.path"),
                GpuIpcChild.class.getName(),
                HexFormat.of().formatHex(driver.memory().exportHandle(memory)),
                HexFormat.of().formatHex(driver.events().exportHandle(event)))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try {
      assertThat(child.waitFor(60, TimeUnit.SECONDS)).as("whether the child ends").isTrue();
      assertThat(new String(child.getInputStream().readAllBytes(), UTF_8)).isEqualTo("saw 5\n");
      assertThat(child.exitValue()).isZero();
    } finally {
      child.destroyForcibly();
    }
    PinnedBlock pinned = device.pinned().allocate(4096);
    driver.streams().copy(pinned.address(), memory, 4096, stream.handle());
    await(stream);
    assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 4095)).isEqualTo((byte) 9);
    device.pinned().free(pinned);
    driver.events().destroy(event);
    driver.memory().free(memory);
  }

  @Test
  void nothingIsLeftAfterAThousandCycles() throws IOException {
    cycle();
    await(device.defaultStream());
    device.tensors().releaseCached();
    long free = driver.memory().room().free();
    List<String> fds = Fds.open();
    int events = device.events().inUse();
    int pinned = device.pinned().blocksInUse();
    for (int i = 0; i < 1000; i++) {
      cycle();
    }
    await(device.defaultStream());
    device.tensors().releaseCached();
    assertThat(driver.memory().room().free()).isGreaterThanOrEqualTo(free - (2 << 20));
    assertThat(Fds.open()).hasSizeLessThanOrEqualTo(fds.size());
    assertThat(device.events().inUse()).isLessThanOrEqualTo(events);
    assertThat(Parts.of(cuda).openBlocks().count()).isZero();
    assertThat(device.pinned().blocksInUse()).isEqualTo(pinned);
  }

  private void cycle() throws IOException {
    long stream = driver.streams().create(0);
    CudaStream own = device.wrap(stream);
    try (CudaStream.Scope _ = own.use();
        Arena arena = Arena.ofConfined()) {
      Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, 1 << 18);
      StreamBlock block = new CudaStreamBlockProvider(() -> cuda).block(Until.LONG);
      driver.streams().fill(tensor.segment().address(), (byte) 1, 1 << 20, stream);
      block.close();
    }
    VirtualMemoryCalls memory = driver.virtualMemory();
    Properties properties = new Properties(0, Share.POSIX_FD, false);
    long bytes = memory.granularity(properties);
    long handle = memory.create(bytes, properties);
    Fds.close(memory.exportFd(handle));
    long address = memory.reserve(bytes);
    memory.map(address, bytes, handle);
    memory.allow(address, bytes, 0);
    driver.streams().fill(address, (byte) 1, bytes, stream);
    await(own);
    memory.unmap(address, bytes);
    memory.freeAddress(address, bytes);
    memory.release(handle);
    device.tensors().releaseCached();
    driver.streams().destroy(stream);
  }

  @Test
  void theDriverIsClosedAndOpenedAgain() {
    // Another reference from the same process: contexts are reference-counted, so the first one
    // remains.
    Cuda second = Cuda.create();
    Tensor tensor = second.device(0).tensors().copyOf(Tensor.of(1f, 2f));
    assertThat(second.device(0).tensors().toHost(tensor).toFloatArray()).containsExactly(1, 2);
    second.close();
    Tensor again = device.tensors().copyOf(Tensor.of(3f));
    assertThat(device.tensors().toHost(again).toFloatArray()).containsExactly(3);
  }
}
