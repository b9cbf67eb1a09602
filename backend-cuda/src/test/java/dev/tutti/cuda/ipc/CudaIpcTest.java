package dev.tutti.cuda.ipc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.Warnings;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.share.CounterFile;
import dev.tutti.cuda.share.ProcessMark;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Shares tensors within a process, which the fake driver allows. */
@Isolated("reads the log")
class CudaIpcTest {
  private final FakeMachine machine = new FakeMachine(2);
  private final FakeCudaDriver fake = machine.fake;
  private final CudaDevice device = machine.cuda.device(1);
  private final CudaIpc producer = new CudaIpc(machine.cuda, IpcChild.JOB, true);
  private final CudaIpc consumer = new CudaIpc(machine.cuda, IpcChild.JOB, true);

  @AfterEach
  void close() {
    machine.close();
  }

  private Tensor tensor(Arena arena, float... values) {
    Tensor tensor = producer.allocate(device, arena, DType.FLOAT32, values.length);
    device.tensors().copyFromHost(tensor, Tensor.of(values));
    return tensor;
  }

  private Tensor tensor() {
    return tensor(Arena.ofAuto(), 1, 2, 3);
  }

  private long used() {
    return Parts.of(device).sharable().usage().usedBytes();
  }

  private static void refused(Reason reason, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(CudaIpcException.class)
        .satisfies(e -> assertThat(((CudaIpcException) e).reason()).isEqualTo(reason));
  }

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
  void handlesThatCannotBeOpenedAreRefused() {
    SharedTensor shared = producer.share(tensor());
    byte[] bytes = shared.handle();
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(new byte[5]));
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(new byte[bytes.length]));
    bytes[bytes.length - 40]++;
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(bytes));
    CudaIpc other = new CudaIpc(machine.cuda, "another job of the tests", true);
    refused(Reason.OTHER_JOB, () -> other.open(shared.handle()));
    other.close();
    CudaIpc strict = CudaIpc.create(machine.cuda, IpcChild.JOB);
    refused(Reason.OWN_PROCESS, () -> strict.open(shared.handle()));
    strict.close();
    ReceivedTensor received = consumer.open(shared.handle());
    refused(Reason.USED_UP, () -> consumer.open(shared.handle()));
    refused(Reason.RECEIVED, () -> consumer.share(received.tensor()));
    received.close();
    refused(Reason.USED_UP, () -> consumer.open(shared.handle()));
    SharedTensor back = producer.share(tensor());
    back.close();
    back.close();
    assertThat(back.isReturned()).isTrue();
    refused(Reason.USED_UP, () -> consumer.open(back.handle()));
    assertThat(producer.outstanding()).isZero();
    refused(Reason.NOT_SHARABLE, () -> producer.share(device.tensors().allocate(DType.FLOAT32, 2)));
    assertThatThrownBy(() -> producer.share(Tensor.of(1f)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> CudaIpc.create(machine.cuda, ""))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> CudaIpc.create(machine.cuda, "x"))
        .hasMessage("the token must have at least 16 characters, but has 1");
  }

  @Test
  void handlesOfOtherPlacesAndSizesAreRefused() {
    SharedTensor shared = producer.share(tensor());
    JobSeal seal = new JobSeal(IpcChild.JOB);
    IpcHandle good = IpcHandle.decode(shared.handle(), seal);
    long size = good.allocationBytes();
    refused(
        Reason.OTHER_HOST,
        () -> consumer.open(with(good, 7, good.producer(), "", size, 3).encode(seal)));
    refused(
        Reason.PRODUCER_GONE,
        () -> consumer.open(with(good, good.host(), 5, "", size, 3).encode(seal)));
    refused(
        Reason.NO_DEVICE,
        () -> consumer.open(with(good, good.host(), good.producer(), "x", size, 3).encode(seal)));
    for (long count : new long[] {-1, size, Long.MAX_VALUE}) {
      refused(
          Reason.WRONG_SIZE,
          () ->
              consumer.open(
                  with(good, good.host(), good.producer(), "", size, count).encode(seal)));
    }
    refused(
        Reason.WRONG_SIZE,
        () ->
            consumer.open(with(good, good.host(), good.producer(), "", 2 * size, 3).encode(seal)));
    assertThat(fake.living("opened memory")).isZero();
    consumer.open(shared.handle()).close();
  }

  /** Modifies bytes as another process of the job could, since it has the token. */
  @Test
  void handlesWithTheSealAndWithoutSenseAreRefused() {
    SharedTensor shared = producer.share(tensor());
    SharedTensor free = producer.share(tensor());
    int freeSlot = free.slot;
    free.close();
    JobSeal seal = new JobSeal(IpcChild.JOB);
    IpcHandle good = IpcHandle.decode(shared.handle(), seal);
    for (int slot : new int[] {-1, -72, CounterFile.SLOTS, Integer.MIN_VALUE}) {
      senseless(with(good, slot, good.ticket(), good.memory(), good.event()), seal);
    }
    for (long ticket : new long[] {0, -1, -ProcessMark.own(), Long.MIN_VALUE}) {
      senseless(with(good, freeSlot, ticket, good.memory(), good.event()), seal);
    }
    senseless(with(good, good.slot(), good.ticket(), new byte[63], good.event()), seal);
    senseless(with(good, good.slot(), good.ticket(), good.memory(), new byte[63]), seal);
    Random random = new Random(1);
    byte[] bytes = shared.handle();
    int length = bytes.length - JobSeal.BYTES;
    for (int i = 0; i < 2000; i++) {
      byte[] changed = bytes.clone();
      changed[12 + random.nextInt(length - 12)] = (byte) random.nextInt();
      System.arraycopy(seal.of(changed, length), 0, changed, length, JobSeal.BYTES);
      try {
        consumer.open(changed).close();
        shared.close();
        shared = producer.share(tensor());
        bytes = shared.handle();
      } catch (CudaIpcException | CudaException e) {
        assertThat(e.getMessage()).isNotEmpty();
      }
    }
    consumer.open(shared.handle()).close();
    producer.collect();
    assertThat(producer.outstanding()).isZero();
    assertThat(fake.living("opened memory")).isZero();
  }

  private void senseless(IpcHandle handle, JobSeal seal) {
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(handle.encode(seal)));
  }

  private static IpcHandle with(
      IpcHandle good, int slot, long ticket, byte[] memory, byte[] event) {
    return new IpcHandle(
        good.host(),
        good.producer(),
        good.fd(),
        good.nonce(),
        slot,
        ticket,
        good.pciBusId(),
        memory,
        good.allocationBytes(),
        good.offset(),
        event,
        good.dtype(),
        good.shape());
  }

  private static IpcHandle with(
      IpcHandle good, long host, long process, String bus, long bytes, long count) {
    return new IpcHandle(
        host,
        process,
        good.fd(),
        good.nonce(),
        good.slot(),
        good.ticket(),
        bus.isEmpty() ? good.pciBusId() : bus,
        good.memory(),
        bytes,
        good.offset(),
        good.event(),
        good.dtype(),
        new long[] {count});
  }

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

  @Test
  void marksTellProcessesApart() {
    assertThat(ProcessMark.isAlive(ProcessMark.own())).isTrue();
    assertThat(ProcessMark.pid(ProcessMark.own())).isEqualTo(ProcessHandle.current().pid());
    assertThat(ProcessMark.isAlive(ProcessMark.own() + (1L << 22))).isFalse();
    assertThat(ProcessMark.own()).isPositive();
  }
}
