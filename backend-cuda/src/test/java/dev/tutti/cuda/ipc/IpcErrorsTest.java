package dev.tutti.cuda.ipc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Tensor;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what is left after an error of the driver, and after a close beside a call. */
class IpcErrorsTest extends IpcPair {
  @ParameterizedTest
  @ValueSource(
      strings = {"cuEventCreate", "cuIpcGetEventHandle", "cuEventRecord", "cuIpcGetMemHandle"})
  void anErrorOfTheDriverLeavesNothingShared(String call) {
    Arena arena = Arena.ofShared();
    Tensor tensor = tensor(arena, 1, 2);
    fake.failOn(call, 1, 999);
    assertThatThrownBy(() -> producer.share(tensor))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(call);
    assertThat(producer.outstanding()).isZero();
    SharedTensor shared = producer.share(tensor);
    consumer.open(shared.handle()).close();
    arena.close();
    assertThat(used()).isZero();
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuIpcOpenMemHandle", "cuIpcOpenEventHandle", "cuStreamWaitEvent"})
  void afterAnErrorOfTheDriverAHandleCanBeOpenedAgain(String call) {
    SharedTensor shared = producer.share(tensor());
    int events = fake.living("event");
    fake.failOn(call, 1, 999);
    assertThatThrownBy(() -> consumer.open(shared.handle()))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining(call);
    assertThat(fake.living("opened memory")).isZero();
    assertThat(fake.living("event")).isEqualTo(events);
    assertThat(consumer.openCount()).isZero();
    consumer.open(shared.handle()).close();
    assertThat(shared.isReturned()).isTrue();
  }

  /** Does not take a tensor back while another process has it open for a moment. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatIsTakenBackWhileAnOpenFailsIsNotLost(boolean closesAll) throws Exception {
    Arena arena = Arena.ofShared();
    SharedTensor shared = producer.share(tensor(arena, 1));
    CountDownLatch held = new CountDownLatch(1);
    fake.holdOn("cuIpcOpenEventHandle", held);
    fake.failOn("cuStreamWaitEvent", 1, 999);
    FutureTask<ReceivedTensor> opening = new FutureTask<>(() -> consumer.open(shared.handle()));
    Thread thread = Thread.ofPlatform().start(opening);
    Until.holds("an open", () -> fake.calls("cuIpcOpenEventHandle").size() == 1);
    if (closesAll) {
      producer.close();
    } else {
      shared.close();
    }
    assertThat(shared.isOpen()).isTrue();
    held.countDown();
    assertThatThrownBy(opening::get).hasRootCauseInstanceOf(CudaException.class);
    thread.join();
    arena.close();
    producer.collect();
    assertThat(producer.outstanding()).isZero();
    assertThat(producer.pendingReleaseCount()).isZero();
    assertThat(used()).isZero();
    refused(Reason.USED_UP, () -> consumer.open(shared.handle()));
  }

  @Test
  void anErrorAtTheCloseReturnsTheCountAllTheSame() {
    SharedTensor shared = producer.share(tensor());
    ReceivedTensor received = consumer.open(shared.handle());
    fake.failOn("cuIpcCloseMemHandle", 1, 999);
    assertThatThrownBy(received::close).isInstanceOf(CudaException.class);
    assertThat(shared.isReturned()).isTrue();
    assertThat(consumer.openCount()).isZero();
    byte[] opener = IpcHandle.decode(shared.handle(), new JobSeal(IpcChild.JOB)).memory();
    fake.driver().memory().closeHandle(ByteBuffer.wrap(opener).getLong());
  }

  @Test
  void aTensorWhoseStreamFailsIsClosedIfTheContextIsLost() {
    SharedTensor shared = producer.share(tensor());
    ReceivedTensor received = consumer.open(shared.handle());
    fake.failOn("cuEventRecord", 1, 999);
    assertThatThrownBy(received::close).isInstanceOf(CudaException.class);
    assertThat(received.tensor().numel()).isEqualTo(3);
    assertThat(shared.isOpen()).isTrue();
    fake.fail(700);
    assertThatThrownBy(received::close).isInstanceOf(CudaException.class);
    fake.fail(0);
    assertThatThrownBy(received::tensor).isInstanceOf(IllegalStateException.class);
    assertThat(shared.isReturned()).isTrue();
    assertThat(fake.living("opened memory")).isZero();
  }

  @Test
  void aTensorThatACallHasStaysOpen() throws Exception {
    SharedTensor shared = producer.share(tensor());
    ReceivedTensor received = consumer.open(shared.handle());
    MemorySegment segment = received.tensor().segment();
    CountDownLatch holds = new CountDownLatch(1);
    CountDownLatch ends = new CountDownLatch(1);
    Thread caller = Thread.ofPlatform().start(() -> whileHeld(segment, holds, ends));
    holds.await();
    assertThatThrownBy(received::close).isInstanceOf(IllegalStateException.class);
    assertThat(consumer.openCount()).isOne();
    ends.countDown();
    caller.join();
    received.close();
    assertThat(shared.isReturned()).isTrue();
  }

  /** Passes a segment to a native function that calls back, until the second latch opens. */
  private static void whileHeld(MemorySegment segment, CountDownLatch holds, CountDownLatch ends) {
    Linker linker = Linker.nativeLinker();
    try (Arena arena = Arena.ofConfined()) {
      MethodHandle compare =
          MethodHandles.lookup()
              .findVirtual(
                  Comparison.class,
                  "compare",
                  MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class))
              .bindTo(new Comparison(holds, ends));
      MemorySegment stub =
          linker.upcallStub(compare, FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS), arena);
      linker
          .downcallHandle(
              linker.defaultLookup().findOrThrow("qsort"),
              FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS))
          .invokeExact(segment, 2L, 4L, stub);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private record Comparison(CountDownLatch holds, CountDownLatch ends) {
    @SuppressWarnings("UnusedMethod") // looked up by name
    int compare(MemorySegment first, MemorySegment second) {
      holds.countDown();
      try {
        ends.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return Long.compare(first.address(), second.address());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCloseWhileATensorIsSharedLeavesNothing(boolean fails) throws Exception {
    Tensor tensor = tensor();
    CountDownLatch held = new CountDownLatch(1);
    fake.holdOn("cuIpcGetMemHandle", held);
    if (fails) {
      fake.failOn("cuIpcGetMemHandle", 1, 1);
    }
    FutureTask<SharedTensor> sharing = new FutureTask<>(() -> producer.share(tensor));
    Thread thread = Thread.ofPlatform().start(sharing);
    Until.holds("a handle that is asked for", () -> fake.calls("cuIpcGetMemHandle").size() == 1);
    producer.close();
    held.countDown();
    thread.join();
    assertThatThrownBy(sharing::get)
        .hasRootCauseInstanceOf(fails ? CudaException.class : IllegalStateException.class);
    assertThat(producer.sender().isDisposed()).isTrue();
    assertThat(producer.sender().counterFiles()).isZero();
  }
}
