package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/** Tests that the fake driver is as strict as the real one; contexts belong to threads. */
@Timeout(value = 300, threadMode = ThreadMode.SAME_THREAD)
class FakeCudaDriverTest {
  private final FakeCudaDriver fake = new FakeCudaDriver(2);
  private final CudaDriver driver = fake.driver();
  private final long context = driver.contexts().retainPrimary(0);

  FakeCudaDriverTest() {
    driver.contexts().setCurrent(context);
  }

  @AfterEach
  void close() {
    fake.close();
  }

  @Test
  void callsNeedTheContextOfTheirDevice() {
    long stream = driver.streams().create(0);
    driver.contexts().setCurrent(driver.contexts().retainPrimary(1));
    assertThatThrownBy(() -> driver.streams().isIdle(stream))
        .hasMessage("cuStreamQuery failed: CUDA_ERROR_INVALID_HANDLE (400)");
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(() -> driver.events().create(EventCalls.Purpose.ORDER));
    assertThatThrownBy(other::join)
        .hasRootCauseMessage("cuEventCreate failed: CUDA_ERROR_INVALID_CONTEXT (201)");
  }

  @Test
  void contextsOutliveHoweverManyOtherThings() {
    for (int i = 0; i < 100_000; i++) {
      driver.events().destroy(driver.events().create(EventCalls.Purpose.ORDER));
    }
    assertThat(fake.living()).containsExactly(Map.entry("context", 1));
  }

  @Test
  void theNthCallFails() {
    fake.failOn("cuEventCreate", 2, 700);
    long event = driver.events().create(EventCalls.Purpose.ORDER);
    assertThatThrownBy(() -> driver.events().create(EventCalls.Purpose.ORDER))
        .isInstanceOf(CudaException.class);
    driver.events().destroy(event);
    driver.events().create(EventCalls.Purpose.ORDER);
    assertThatThrownBy(() -> driver.events().destroy(event)).isInstanceOf(CudaException.class);
    assertThat(fake.living()).containsEntry("event", 1).containsEntry("context", 1);
    assertThat(fake.calls("cuEventCreate")).hasSize(3);
  }

  @Test
  void aGraphRunsItsKernelsInEachLaunch() {
    AtomicInteger sum = new AtomicInteger();
    fake.kernel("add", 1, arguments -> sum.addAndGet((int) arguments[0]));
    long module = driver.kernels().load(new byte[1]);
    long add = driver.kernels().function(module, "add");
    long stream = driver.streams().create(0);
    LaunchParameters parameters = new LaunchParameters(1);
    parameters.set(0, 5L);
    driver.graphs().beginCapture(stream);
    parameters.launch(driver.kernels(), add, 1, 1, stream);
    assertThat(driver.streams().isCapturing(stream)).isTrue();
    long graph = driver.graphs().endCapture(stream);
    parameters.set(0, 100L);
    driver.streams().synchronize(stream);
    assertThat(sum).as("before the graph runs").hasValue(0);
    long executable = driver.graphs().instantiate(graph);
    driver.graphs().launch(executable, stream);
    driver.graphs().launch(executable, stream);
    driver.streams().synchronize(stream);
    assertThat(sum).hasValue(10);
    driver.graphs().destroyExecutable(executable);
    driver.graphs().destroy(graph);
    assertThat(fake.living()).doesNotContainKeys("graph", "executable graph");
  }

  @Test
  void workOnFreedMemoryFailsTheDevice() {
    long memory = driver.memory().allocate(64);
    driver.memory().free(memory);
    driver.streams().fill(memory, (byte) 1, 64, 0);
    Until.holds(
        "the failure",
        () -> {
          try {
            driver.streams().isIdle(0);
            return false;
          } catch (CudaException e) {
            return e.code() == FakeCudaDriver.ILLEGAL_ADDRESS;
          }
        });
    fake.fail(0);
  }

  @Test
  void physicalMemoryGoesWithItsLastHolder() {
    VirtualMemoryCalls memory = driver.virtualMemory();
    Properties properties = new Properties(0, Share.POSIX_FD, false);
    long bytes = memory.granularity(properties);
    assertThatThrownBy(() -> memory.create(bytes + 1, properties))
        .isInstanceOf(CudaException.class);
    long handle = memory.create(bytes, properties);
    long imported = memory.importFd(memory.exportFd(handle));
    long address = memory.reserve(bytes);
    assertThat(fake.memory().isUsable(address, 1)).isFalse();
    memory.map(address, bytes, imported);
    memory.allow(address, bytes, 0);
    assertThat(fake.memory().isUsable(address, bytes)).isTrue();
    memory.release(handle);
    memory.release(imported);
    assertThat(fake.memory().used()).isEqualTo(bytes);
    assertThatThrownBy(() -> memory.freeAddress(address, bytes)).isInstanceOf(CudaException.class);
    memory.unmap(address, bytes);
    assertThat(fake.memory().used()).isZero();
    memory.freeAddress(address, bytes);
    assertThat(fake.living()).containsOnlyKeys("context");
  }

  @Test
  void whatWasFreedLongAgoIsForgotten() {
    VirtualMemoryCalls virtual = driver.virtualMemory();
    long bytes = FakeMemory.MOST_FREED / 4;
    for (int i = 0; i < 6; i++) {
      driver.memory().free(driver.memory().allocate(bytes));
      driver.memory().freeHost(driver.memory().allocateHost(bytes));
      virtual.freeAddress(virtual.reserve(bytes), bytes);
    }
    assertThat(fake.memory().rangeCount()).isEqualTo(4);
  }

  @Test
  void handlesOpenWhatTheyStandFor() {
    long memory = driver.memory().allocate(64);
    long opened = driver.memory().openHandle(driver.memory().exportHandle(memory));
    assertThat(opened).isEqualTo(memory);
    assertThat(fake.living()).containsEntry("opened memory", 1);
    driver.memory().closeHandle(opened);
    assertThatThrownBy(() -> driver.memory().closeHandle(opened)).isInstanceOf(CudaException.class);
    long event = driver.events().create(EventCalls.Purpose.INTERPROCESS);
    long other = driver.events().openHandle(driver.events().exportHandle(event));
    driver.events().record(event, 0);
    Until.holds("the record", () -> driver.events().isReached(other));
    long local = driver.events().create(EventCalls.Purpose.ORDER);
    assertThatThrownBy(() -> driver.events().exportHandle(local)).isInstanceOf(CudaException.class);
  }
}
