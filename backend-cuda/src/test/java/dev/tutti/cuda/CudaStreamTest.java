package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.TuttiException;
import dev.tutti.cuda.access.StreamReserve;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CudaStreamTest {
  private final FakeMachine machine = new FakeMachine(2);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void close() {
    machine.close();
  }

  @Test
  void aThreadBeginsWithTheDefaultStreamOfDeviceZero() {
    assertThat(cuda.currentDevice().index()).isZero();
    assertThat(cuda.currentStream().handle()).isZero();
    assertThat(cuda.device(1).currentStream()).isEqualTo(cuda.device(1).defaultStream());
    assertThat(cuda.currentStream()).hasToString("default stream of cuda:0");
  }

  @Test
  void scopesNestAndRestoreStreamAndDevice() {
    CudaStream one = cuda.device(0).poolStream();
    CudaStream two = cuda.device(1).poolStream();
    try (CudaStream.Scope _ = one.use()) {
      assertThat(cuda.currentStream()).isEqualTo(one);
      try (CudaStream.Scope _ = two.use()) {
        assertThat(cuda.currentStream()).isEqualTo(two);
        assertThat(cuda.device(0).currentStream()).isEqualTo(one);
      }
      assertThat(cuda.currentStream()).isEqualTo(one);
      assertThat(cuda.device(1).currentStream().handle()).isZero();
    }
    assertThat(cuda.currentStream().handle()).isZero();
  }

  @Test
  void aStreamIsExchangedForTheCurrentOneOfItsDevice() {
    CudaStream one = cuda.device(1).poolStream();
    CudaStream two = cuda.device(1).poolStream();
    try (CudaStream.Scope _ = one.use();
        CudaStream.Scope _ = cuda.device(0).poolStream().use()) {
      assertThat(two.makeCurrent()).isEqualTo(one);
      assertThat(cuda.currentDevice().index()).isZero();
      assertThat(cuda.device(1).currentStream()).isEqualTo(two);
      assertThat(one.makeCurrent()).isEqualTo(two);
    }
    assertThat(cuda.device(1).currentStream().handle()).isZero();
  }

  @Test
  @SuppressWarnings("try") // deliberately closed on the wrong thread
  void threadsHaveTheirOwnCurrentStream() {
    CudaStream stream = cuda.device(1).poolStream();
    try (CudaStream.Scope scope = stream.use()) {
      CompletableFuture<CudaStream> other = new CompletableFuture<>();
      Thread.ofPlatform().start(() -> other.complete(cuda.currentStream()));
      assertThat(other.join()).isEqualTo(cuda.device(0).defaultStream());
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread.ofPlatform()
          .start(
              () -> {
                try {
                  scope.close();
                  thrown.complete(new AssertionError("closed"));
                } catch (IllegalStateException e) {
                  thrown.complete(e);
                }
              });
      assertThat(thrown.join()).isInstanceOf(IllegalStateException.class);
      assertThat(cuda.currentStream()).isEqualTo(stream);
    }
  }

  @Test
  void scopesAreClosedFromTheInside() {
    CudaStream.Scope outer = cuda.device(0).poolStream().use();
    CudaStream.Scope inner = cuda.device(0).poolStream().use();
    assertThatThrownBy(outer::close).isInstanceOf(IllegalStateException.class);
    inner.close();
    inner.close();
    outer.close();
    assertThat(cuda.currentStream().handle()).isZero();
  }

  @Test
  void thePoolHandsOutItsStreamsInTurn() {
    List<CudaStream> first = new ArrayList<>();
    for (int i = 0; i < CudaDevice.POOL_STREAMS; i++) {
      first.add(cuda.device(0).poolStream());
    }
    assertThat(new HashSet<>(first)).hasSize(CudaDevice.POOL_STREAMS);
    for (CudaStream stream : first) {
      assertThat(cuda.device(0).poolStream()).isSameAs(stream);
    }
    assertThat(machine.fake.calls("cuStreamCreateWithPriority"))
        .hasSize(CudaDevice.POOL_STREAMS + StreamReserve.FIRST)
        .containsOnly("cuStreamCreateWithPriority -5");
  }

  @Test
  void anEventOrdersStreamsOfTwoDevices() {
    CudaStream first = cuda.device(0).poolStream();
    CudaStream second = cuda.device(1).poolStream();
    CountDownLatch held = machine.hold(first);
    CudaEvent done = first.record();
    second.waitFor(done);
    CudaEvent after = second.record();
    assertThat(after.awaitReached(System.nanoTime() + 20_000_000)).isFalse();
    held.countDown();
    assertThat(after.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    assertThat(done.isReached()).isTrue();
    done.close();
    after.close();
  }

  @Test
  void anEventOrdersTheCurrentStream() {
    CudaStream first = cuda.device(0).poolStream();
    CountDownLatch held = machine.hold(first);
    CudaEvent done = first.record();
    done.orderCurrentStream();
    assertThat(cuda.currentStream().isIdle()).isFalse();
    held.countDown();
    Until.holds("the order", cuda.currentStream()::isIdle);
    machine.fake.clearCalls();
    assertThat(done.isReached()).isTrue();
    done.orderCurrentStream();
    assertThat(machine.fake.calls()).as("after it was reached").isEmpty();
  }

  /** A rank may use a device that it never made current on its thread. */
  @Test
  void anEventOrdersTheCurrentStreamOfItsOwnDevice() {
    CudaStream other = cuda.device(1).poolStream();
    CountDownLatch held = machine.hold(other);
    try (CudaEvent done = other.record()) {
      assertThat(cuda.currentDevice()).isEqualTo(cuda.device(0));
      done.orderCurrentStream();
      assertThat(cuda.device(1).currentStream().isIdle()).isFalse();
      held.countDown();
      Until.holds("the order", cuda.device(1).currentStream()::isIdle);
    }
  }

  @Test
  void reachedEventsAreUsedAgain() {
    CudaStream stream = cuda.currentStream();
    for (int i = 0; i < 100; i++) {
      CudaEvent event = stream.record();
      assertThat(event.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
      assertThat(event.isReached()).isTrue();
    }
    assertThat(machine.fake.calls("cuEventCreate")).hasSize(1);
    assertThat(cuda.device(0).events().inUse()).isZero();
  }

  @Test
  void anEventThatWasGivenUpIsNotAskedAgain() {
    CudaStream stream = cuda.device(0).poolStream();
    CountDownLatch held = machine.hold(stream);
    CudaEvent event = stream.record();
    event.close();
    event.close();
    assertThatThrownBy(event::isReached).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(event::orderCurrentStream).isInstanceOf(IllegalStateException.class);
    assertThat(cuda.device(0).events().inUse()).isZero();
    held.countDown();
    Until.holds("the end", stream::isIdle);
  }

  @Test
  void aRecordThatFailsLosesNoEvent() {
    machine.fake.failOn("cuEventRecord", 1, 700);
    assertThatThrownBy(() -> cuda.currentStream().record()).isInstanceOf(CudaException.class);
    assertThat(cuda.device(0).events().inUse()).isZero();
  }

  @Test
  void aDeviceThatFailedIsReported() {
    CudaEvent event = cuda.currentStream().record();
    machine.fake.fail(700);
    assertThatThrownBy(event::isReached)
        .isInstanceOf(CudaException.class)
        .hasMessage("cuEventQuery failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    machine.fake.fail(0);
    event.close();
  }

  @Test
  void aWaitHasADeadline() {
    CudaStream stream = cuda.device(0).poolStream();
    CountDownLatch held = machine.hold(stream);
    assertThatThrownBy(() -> stream.await(Duration.ofMillis(5)))
        .isInstanceOf(TuttiException.class)
        .hasMessageContaining("of cuda:0 did not finish within 5 ms");
    held.countDown();
    stream.await(Until.LONG);
    assertThat(stream.isIdle()).isTrue();
    assertThat(cuda.device(0).events().inUse()).isZero();
  }

  @Test
  void aForeignStreamIsUsedAndNotDestroyed() {
    cuda.device(0).context().enter();
    long handle = machine.fake.driver().streams().create(0);
    CudaStream stream = cuda.device(0).wrap(handle);
    assertThat(stream).isEqualTo(cuda.device(0).wrap(handle));
    assertThat(cuda.device(0).wrap(0)).isSameAs(cuda.device(0).defaultStream());
    stream.await(Until.LONG);
    CudaTensors tensors = cuda.device(0).tensors();
    try (CudaStream.Scope _ = stream.use();
        Arena arena = Arena.ofConfined()) {
      assertThat(tensors.allocate(arena, DType.FLOAT32, 100).numel()).isEqualTo(100);
    }
    machine.fake.driver().streams().destroy(handle);
    assertAllIsReleased(tensors);
  }

  /** Releases what has been freed; one release waits for a second at most. */
  private static void assertAllIsReleased(CudaTensors tensors) {
    Until.holds(
        "the release",
        () -> {
          tensors.releaseCached();
          return tensors.reservedBytes() == 0;
        });
  }

  @Test
  void aForeignStreamThatTensorsLeftWhileItWasRecordedIsNotAskedAgain() {
    cuda.device(1).context().enter();
    long handle = machine.fake.driver().streams().create(0);
    CudaDevice device = cuda.device(1);
    CudaTensors others = cuda.device(0).tensors();
    GraphCalls graphs = machine.fake.driver().graphs();
    try (CudaStream.Scope _ = device.wrap(handle).use();
        Arena arena = Arena.ofConfined()) {
      assertThat(device.tensors().allocate(arena, DType.FLOAT32, 100).numel()).isEqualTo(100);
      others.useOn(others.allocate(arena, DType.FLOAT32, 100), device.wrap(handle));
      device.context().enter();
      graphs.beginCapture(handle);
    }
    assertThatThrownBy(() -> device.unwrap(handle))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is it being captured into a graph?");
    device.context().enter();
    graphs.destroy(graphs.endCapture(handle));
    device.unwrap(handle);
    machine.fake.driver().streams().destroy(handle);
    assertAllIsReleased(device.tensors());
    assertAllIsReleased(others);
    assertThat(device.events().inUse()).isZero();
  }

  @Test
  void aWaitForTheDeviceSparesRecordings() throws Exception {
    CudaDevice device = cuda.device(0);
    CudaStream recorded = device.poolStream();
    GraphCalls graphs = machine.fake.driver().graphs();
    device.context().enter();
    graphs.beginCapture(recorded.handle(), GraphCalls.GLOBAL);
    assertThat(device.awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Duration.ofMillis(5)))).isFalse();
    CompletableFuture<Boolean> idle =
        CompletableFuture.supplyAsync(
            () -> device.awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Until.LONG)));
    assertThat(machine.fake.calls("cuCtxSynchronize")).isEmpty();
    graphs.destroy(graphs.endCapture(recorded.handle()));
    assertThat(idle.get()).isTrue();
    CountDownLatch held = machine.hold(recorded);
    assertThat(device.awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Duration.ofMillis(5)))).isFalse();
    held.countDown();
    assertThat(device.awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Until.LONG))).isTrue();
  }

  @Test
  void eventsAndStreamsAreAskedWhileOthersRecordGraphs() throws Exception {
    CudaStream recorded = cuda.device(0).poolStream();
    CudaStream stream = cuda.device(0).poolStream();
    CountDownLatch held = machine.hold(stream);
    CudaEvent event = stream.record();
    GraphCalls graphs = machine.fake.driver().graphs();
    graphs.beginCapture(recorded.handle(), GraphCalls.GLOBAL);
    assertThat(event.isReached()).as("on the thread that records").isFalse();
    held.countDown();
    Thread.ofPlatform()
        .start(() -> Until.holds("the end", () -> event.isReached() && stream.isIdle()))
        .join();
    assertThat(event.isReached()).isTrue();
    assertThat(recorded.isIdle()).as("while it is recorded").isFalse();
    graphs.destroy(graphs.endCapture(recorded.handle()));
    assertThat(recorded.isIdle()).isTrue();
  }
}
