package dev.tutti.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Registration;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.GraphCalls;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DeviceAllocatorTest {
  private static final long MIB = 1 << 20;

  private final FakeCudaDriver fake = new FakeCudaDriver(2);
  private final DeviceContext context = new DeviceContext(fake.driver(), 0);
  private final EventPool events = new EventPool(context);
  private final DeviceAllocator allocator = new DeviceAllocator(context, () -> true);
  private final BlockStream stream = new BlockStream(context, events, 0, false);
  private final long otherHandle = newStream();
  private final BlockStream other = new BlockStream(context, events, otherHandle, false);

  private long newStream() {
    context.enter();
    return fake.driver().streams().create(0);
  }

  @AfterEach
  void close() {
    allocator.close();
    allocator.close();
    context.enter();
    fake.driver().streams().destroy(otherHandle);
    events.close();
    context.close();
    assertThat(fake.living()).isEmpty();
    fake.close();
  }

  @Test
  void smallBlocksShareASegment() {
    DeviceBlock first = allocator.allocate(1, stream);
    DeviceBlock second = allocator.allocate(513, stream);
    assertThat(first.bytes()).isEqualTo(512);
    assertThat(second.bytes()).isEqualTo(1024);
    assertThat(second.address()).isEqualTo(first.address() + 512);
    assertThat(allocator.usage()).isEqualTo(new DeviceAllocator.Usage(1536, 2 * MIB));
    assertThat(fake.calls("cuMemCreate")).containsExactly("cuMemCreate " + 2 * MIB + " POSIX_FD");
  }

  @Test
  void sizesDecideHowMuchTheDriverIsAskedFor() {
    allocator.allocate(MIB + 1, stream);
    allocator.allocate(10 * MIB, stream);
    DeviceBlock large = allocator.allocate(10 * MIB + 1, stream);
    allocator.allocate(33 * MIB, stream);
    assertThat(fake.calls("cuMemCreate"))
        .containsExactly(
            "cuMemCreate " + 32 * MIB + " POSIX_FD", "cuMemCreate " + 34 * MIB + " POSIX_FD");
    assertThat(large.bytes()).isEqualTo(10 * MIB + 512);
  }

  @Test
  void neighborsBecomeOneBlockAgain() {
    List<DeviceBlock> blocks = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      blocks.add(allocator.allocate(MIB / 2, stream));
    }
    long address = blocks.get(0).address();
    for (int i : new int[] {2, 0, 3, 1}) {
      allocator.free(blocks.get(i));
    }
    DeviceBlock whole = allocator.allocate(MIB, stream);
    assertThat(whole.address()).isEqualTo(address);
    assertThat(fake.calls("cuMemCreate")).hasSize(1);
    allocator.free(whole);
    assertThat(allocator.usage()).isEqualTo(new DeviceAllocator.Usage(0, 2 * MIB));
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isZero();
  }

  @Test
  void aFreedBlockIsForItsOwnStream() {
    DeviceBlock first = allocator.allocate(100, stream);
    allocator.free(first);
    assertThat(allocator.allocate(100, other).address()).isNotEqualTo(first.address());
    assertThat(allocator.allocate(100, stream).address()).isEqualTo(first.address());
    assertThat(fake.calls("cuEventRecord")).isEmpty();
  }

  @Test
  void usesInOtherStreamsAreWaitedFor() {
    DeviceBlock block = allocator.allocate(100, stream);
    allocator.useOn(block, other);
    allocator.useOn(block, other);
    allocator.useOn(block, stream);
    long[] gate = hold(otherHandle);
    allocator.free(block);
    assertThat(fake.calls("cuEventRecord")).hasSize(1);
    assertThat(allocator.allocate(100, stream).address()).isNotEqualTo(block.address());
    open(gate);
    Until.holds("the other stream", () -> fake.driver().streams().isIdle(otherHandle));
    assertThat(allocator.allocate(100, stream).address()).isEqualTo(block.address());
    assertThat(events.inUse()).isZero();
  }

  /** Holds a stream until a word in host memory is 1. */
  private long[] hold(long stream) {
    long word = fake.driver().memory().allocateHost(4);
    MemorySegment.ofAddress(word).reinterpret(4).fill((byte) 0);
    fake.driver().streams().waitValue(stream, word, 1);
    return new long[] {word};
  }

  private void open(long[] gate) {
    MemorySegment.ofAddress(gate[0]).reinterpret(4).fill((byte) 1);
    fake.driver().memory().freeHost(gate[0]);
  }

  @Test
  void aFullDeviceGetsBackWhatIsCached() {
    fake.memory().setCapacity(100 * MIB);
    allocator.free(allocator.allocate(60 * MIB, stream));
    fake.clearCalls();
    DeviceBlock block = allocator.allocate(60 * MIB, other);
    assertThat(fake.calls("cuMemCreate", "cuMemUnmap"))
        .hasSize(3)
        .satisfies(calls -> assertThat(calls.get(1)).startsWith("cuMemUnmap"));
    assertThat(allocator.usage()).isEqualTo(new DeviceAllocator.Usage(60 * MIB, 60 * MIB));
    allocator.free(block);
  }

  @Test
  void listenersFreeWhatTheyCan() {
    fake.memory().setCapacity(100 * MIB);
    DeviceBlock cache = allocator.allocate(60 * MIB, stream);
    List<Long> asked = new ArrayList<>();
    Registration remove =
        allocator.addListener(
            bytes -> {
              asked.add(bytes);
              allocator.free(cache);
            });
    DeviceBlock block = allocator.allocate(50 * MIB, stream);
    assertThat(asked).containsExactly(50 * MIB);
    remove.close();
    assertThatThrownBy(() -> allocator.allocate(60 * MIB, stream))
        .isInstanceOf(CudaException.class);
    assertThat(asked).hasSize(1);
    allocator.free(block);
  }

  @Test
  void anExceptionHasTheNumbers() {
    fake.memory().setCapacity(100 * MIB);
    DeviceBlock used = allocator.allocate(20 * MIB, stream);
    allocator.free(allocator.allocate(512, stream));
    fake.clearCalls();
    assertThatThrownBy(() -> allocator.allocate(90 * MIB, stream))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue())
        .hasMessage(
            "allocation of 94371840 bytes on cuda:0 failed: CUDA_ERROR_OUT_OF_MEMORY (2); of"
                + " 104857600 bytes, 83886080 are free; tensors of this process use 20971520, and"
                + " 0 more are kept for reuse");
    assertThat(fake.calls("cuMemCreate")).as("one try and one more").hasSize(2);
    allocator.free(used);
  }

  @Test
  void otherErrorsAreNotTriedAgain() {
    fake.failOn("cuMemCreate", 1, 700);
    assertThatThrownBy(() -> allocator.allocate(1, stream))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.code()).isEqualTo(700));
    assertThat(fake.calls("cuMemCreate")).hasSize(1);
  }

  @Test
  void segmentsOfABusyStreamAreKept() {
    allocator.free(allocator.allocate(1, other));
    long[] gate = hold(otherHandle);
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isEqualTo(2 * MIB);
    open(gate);
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isZero();
  }

  @Test
  void aForeignStreamIsNotAskedOnceNoBlockUsesIt() {
    long handle = newStream();
    BlockStream foreign = new BlockStream(context, events, handle, true);
    allocator.free(allocator.allocate(100, foreign));
    DeviceBlock used = allocator.allocate(100, stream);
    allocator.useOn(used, foreign);
    allocator.free(used);
    fake.driver().streams().destroy(handle);
    // A release waits for a second at most until the stream has reached the marks.
    Until.holds(
        "the release",
        () -> {
          allocator.releaseCached();
          return allocator.usage().reservedBytes() == 0;
        });
    assertThat(allocator.usage()).isEqualTo(new DeviceAllocator.Usage(0, 0));
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aBlockOfAForeignStreamIsForWhoeverHasTheHandleOnceItsWorkIsDone() {
    BlockStream foreign = new BlockStream(context, events, otherHandle, true);
    DeviceBlock block = allocator.allocate(100, foreign);
    long[] gate = hold(otherHandle);
    allocator.free(block);
    assertThat(allocator.allocate(100, foreign).address()).isNotEqualTo(block.address());
    open(gate);
    context.enter();
    Until.holds("the stream", () -> fake.driver().streams().isIdle(otherHandle));
    assertThat(allocator.allocate(100, foreign).address()).isEqualTo(block.address());
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aThreadThatRecordsAllocatesWhileBlocksWait() {
    DeviceBlock block = allocator.allocate(100, stream);
    allocator.useOn(block, other);
    long[] gate = hold(otherHandle);
    allocator.free(block);
    long recorded = newStream();
    fake.driver().graphs().beginCapture(recorded);
    assertThat(allocator.allocate(100, stream).address()).isNotEqualTo(block.address());
    assertThat(allocator.allocate(3 * MIB, stream).bytes()).isEqualTo(3 * MIB);
    fake.driver().graphs().destroy(fake.driver().graphs().endCapture(recorded));
    open(gate);
    Until.holds("the other stream", () -> fake.driver().streams().isIdle(otherHandle));
    assertThat(allocator.allocate(100, stream).address()).isEqualTo(block.address());
    assertThat(events.inUse()).isZero();
    fake.driver().streams().destroy(recorded);
  }

  @Test
  void aBlockThatIsFreedWhileItsOtherStreamIsRecordedWaitsForTheEnd() throws Exception {
    DeviceBlock block = allocator.allocate(100, stream);
    allocator.useOn(block, other);
    fake.driver().graphs().beginCapture(otherHandle);
    allocator.free(block);
    CompletableFuture<Long> elsewhere =
        CompletableFuture.supplyAsync(() -> allocator.allocate(100, stream).address());
    assertThat(elsewhere.get(60, TimeUnit.SECONDS)).isNotEqualTo(block.address());
    fake.driver().graphs().destroy(fake.driver().graphs().endCapture(otherHandle));
    Until.holds("the block", () -> allocator.allocate(100, stream).address() == block.address());
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aStreamThatIsRecordedKeepsItsSegments() throws Exception {
    allocator.free(allocator.allocate(1, other));
    fake.driver().graphs().beginCapture(otherHandle, GraphCalls.GLOBAL);
    CompletableFuture.runAsync(allocator::releaseCached).get(60, TimeUnit.SECONDS);
    assertThat(allocator.usage().reservedBytes()).isEqualTo(2 * MIB);
    fake.driver().graphs().destroy(fake.driver().graphs().endCapture(otherHandle));
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isZero();
  }

  @Test
  void aStreamOfAnotherDeviceIsWaitedFor() {
    try (DeviceContext second = new DeviceContext(fake.driver(), 1)) {
      EventPool itsEvents = new EventPool(second);
      second.enter();
      long itsStream = fake.driver().streams().create(0);
      long[] gate = hold(itsStream);
      DeviceBlock block = allocator.allocate(100, stream);
      allocator.useOn(block, new BlockStream(second, itsEvents, itsStream, false));
      allocator.free(block);
      assertThat(allocator.allocate(100, stream).address()).isNotEqualTo(block.address());
      second.enter();
      open(gate);
      Until.holds("the other device", () -> second.isIdle(itsStream));
      assertThat(allocator.allocate(100, stream).address()).isEqualTo(block.address());
      assertThat(itsEvents.inUse()).isZero();
      second.enter();
      fake.driver().streams().destroy(itsStream);
      itsEvents.close();
    }
    context.enter();
  }

  @Test
  void anAllocationThatLooksAtAnotherDeviceComesBack() {
    try (DeviceContext second = new DeviceContext(fake.driver(), 1)) {
      EventPool itsEvents = new EventPool(second);
      second.enter();
      long itsStream = fake.driver().streams().create(0);
      DeviceBlock block = allocator.allocate(100, stream);
      allocator.useOn(block, new BlockStream(second, itsEvents, itsStream, false));
      allocator.free(block);
      Until.holds("the other device", () -> second.isIdle(itsStream));
      assertThat(allocator.allocate(100, stream).address()).isEqualTo(block.address());
      assertThat(fake.driver().streams().isIdle(otherHandle)).as("in the right context").isTrue();
      second.enter();
      fake.driver().streams().destroy(itsStream);
      itsEvents.close();
    }
    context.enter();
  }

  @Test
  void aBlockWhoseUseCannotBeMarkedIsTriedAgain() {
    DeviceBlock block = allocator.allocate(100, stream);
    allocator.useOn(block, other);
    fake.failOn("cuEventRecord", 1, 400);
    allocator.free(block);
    assertThat(events.inUse()).isZero();
    Until.holds("the block", () -> allocator.allocate(100, stream).address() == block.address());
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aLookThatFailsLosesNoBlock() {
    DeviceBlock block = allocator.allocate(100, stream);
    allocator.useOn(block, other);
    allocator.free(block);
    fake.fail(700);
    assertThatThrownBy(() -> allocator.allocate(100, stream)).hasMessageContaining("700");
    fake.fail(0);
    Until.holds("the block", () -> allocator.allocate(100, stream).address() == block.address());
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aThreadThatGoesOnElsewhereEntersTheContextAgain() {
    DeviceBlock block = allocator.allocate(100, other);
    allocator.useOn(block, stream);
    allocator.free(block);
    allocator.free(allocator.allocate(3 * MIB, stream));
    Until.holds("the mark in the stream", () -> fake.driver().streams().isIdle(0));
    long[] gate = hold(otherHandle);
    fake.changeCarriers();
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isEqualTo(2 * MIB);
    context.enter();
    open(gate);
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isZero();
    context.enter();
  }

  @Test
  void aSegmentThatCannotBeMappedLeavesNothing() {
    for (String call : List.of("cuMemAddressReserve", "cuMemMap", "cuMemSetAccess")) {
      fake.failOn(call, 1, 1);
      assertThatThrownBy(() -> allocator.allocate(1, stream)).hasMessageStartingWith(call);
      assertThat(fake.living()).doesNotContainKeys("addresses", "physical memory");
      assertThat(fake.memory().used()).isZero();
    }
    allocator.allocate(1, stream);
  }

  @Test
  void memoryIsReleasedWhileAnotherStreamIsHeld() {
    allocator.free(allocator.allocate(1, stream));
    long[] gate = hold(otherHandle);
    allocator.releaseCached();
    assertThat(allocator.usage().reservedBytes()).isZero();
    assertThat(fake.driver().streams().isIdle(otherHandle)).isFalse();
    open(gate);
  }

  @Test
  void aDeviceWithoutVirtualMemoryIsUsedAsWell() {
    fake.setAttribute(DeviceAttribute.VIRTUAL_MEMORY, 0);
    DeviceAllocator plain = new DeviceAllocator(context, () -> true);
    fake.clearCalls();
    plain.free(plain.allocate(1, stream));
    plain.releaseCached();
    assertThat(fake.calls("cuMemAlloc", "cuMemFree", "cuMemCreate"))
        .hasSize(2)
        .startsWith("cuMemAlloc 2097152");
    plain.close();
  }

  @Test
  void whatWaitsForTheDeviceIsNotGivenBackWhileThatIsHeld() {
    AtomicBoolean mayWait = new AtomicBoolean();
    DeviceAllocator sharable = DeviceAllocator.ofPlainSegments(context, mayWait::get);
    fake.memory().setCapacity(100 * MIB);
    sharable.free(sharable.allocate(60 * MIB, stream));
    long[] gate = hold(otherHandle);
    fake.clearCalls();
    assertThatThrownBy(() -> sharable.allocate(70 * MIB, stream))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue());
    assertThat(fake.calls("cuMemFree")).isEmpty();
    assertThat(fake.calls("cuMemAlloc")).as("which waits as well").isEmpty();
    context.enter();
    open(gate);
    mayWait.set(true);
    sharable.free(sharable.allocate(70 * MIB, stream));
    assertThat(fake.calls("cuMemFree")).hasSize(1);
    sharable.close();
  }

  @Test
  void whatWaitsForTheDeviceEndsWhereSomebodyHoldsThatMeanwhile() {
    DeviceAllocator sharable =
        DeviceAllocator.ofPlainSegments(context, () -> fake.calls("cuMemFree").isEmpty());
    DeviceBlock first = sharable.allocate(40 * MIB, stream);
    sharable.free(sharable.allocate(40 * MIB, stream));
    sharable.free(first);
    sharable.releaseCached();
    assertThat(fake.calls("cuMemFree")).hasSize(1);
    assertThat(sharable.usage()).isEqualTo(new DeviceAllocator.Usage(0, 40 * MIB));
    sharable.close();
  }

  @Test
  void peersAreLetInOnce() {
    allocator.allocate(1, stream);
    try (DeviceContext peer = new DeviceContext(fake.driver(), 1)) {
      allocator.addPeer(peer);
      allocator.allocate(3 * MIB, stream);
      assertThat(fake.calls("cuMemSetAccess"))
          .map(call -> call.substring(call.lastIndexOf(' ') + 1))
          .containsExactly("0", "1", "0", "1");
      fake.setAttribute(DeviceAttribute.VIRTUAL_MEMORY, 0);
      DeviceAllocator plain = new DeviceAllocator(context, () -> true);
      fake.clearCalls();
      plain.addPeer(peer);
      assertThat(fake.calls("cuCtxEnablePeerAccess")).as("while there is no memory").isEmpty();
      plain.allocate(1, stream);
      plain.allocate(3 * MIB, stream);
      assertThat(fake.calls("cuCtxEnablePeerAccess"))
          .containsExactly("cuCtxEnablePeerAccess 0x" + Long.toHexString(context.handle()));
      plain.close();
    }
  }

  @Test
  void addressesAreFoundWithinBlocksInUse() {
    DeviceBlock block = allocator.allocate(1000, stream);
    assertThat(allocator.find(block.address())).isSameAs(block);
    assertThat(allocator.find(block.address() + 1023)).isSameAs(block);
    assertThat(allocator.find(block.address() + 1024)).isNull();
    assertThat(allocator.find(block.address() - 1)).isNull();
    allocator.free(block);
    assertThat(allocator.find(block.address())).isNull();
    assertThatThrownBy(() -> allocator.free(block)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> allocator.useOn(block, other))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> allocator.allocate(0, stream))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void blocksInUseNeverOverlap() {
    Random random = new Random(7);
    List<DeviceBlock> live = new ArrayList<>();
    for (int i = 0; i < 5000; i++) {
      if (live.size() > 60 || (!live.isEmpty() && random.nextInt(3) == 0)) {
        allocator.free(live.remove(random.nextInt(live.size())));
      } else {
        long bytes = 1 + (long) Math.pow(2, 8 + 15 * random.nextDouble());
        DeviceBlock block = allocator.allocate(bytes, random.nextBoolean() ? stream : other);
        assertThat(block.bytes()).isGreaterThanOrEqualTo(bytes);
        live.add(block);
      }
    }
    live.sort(Comparator.comparingLong(DeviceBlock::address));
    long used = 0;
    for (int i = 0; i < live.size(); i++) {
      used += live.get(i).bytes();
      assertThat(i == 0 ? 0 : live.get(i - 1).address() + live.get(i - 1).bytes())
          .isLessThanOrEqualTo(live.get(i).address());
    }
    assertThat(allocator.usage().usedBytes()).isEqualTo(used);
    live.forEach(allocator::free);
    allocator.releaseCached();
    assertThat(allocator.usage()).isEqualTo(new DeviceAllocator.Usage(0, 0));
    assertThat(fake.memory().used()).isZero();
  }
}
