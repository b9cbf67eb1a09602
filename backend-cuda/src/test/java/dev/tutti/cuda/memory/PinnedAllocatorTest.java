package dev.tutti.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.driver.FakeCudaDriver;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class PinnedAllocatorTest {
  private final FakeCudaDriver fake = new FakeCudaDriver(1);
  private final DeviceContext context = new DeviceContext(fake.driver(), 0);
  private final EventPool events = new EventPool(context);
  private final AtomicBoolean mayWait = new AtomicBoolean(true);
  private final PinnedAllocator pinned = new PinnedAllocator(context, events, mayWait::get);
  private final PinnedBlock gate = pinned.allocate(4);

  @AfterEach
  void close() {
    pinned.close();
    events.close();
    context.close();
    assertThat(fake.living()).isEmpty();
    fake.close();
  }

  private void hold() {
    context.enter();
    gate.segment().fill((byte) 0);
    fake.driver().streams().waitValue(0, gate.address(), 1);
  }

  private void open() {
    gate.segment().fill((byte) 1);
    Until.holds("the stream", () -> fake.driver().streams().isIdle(0));
  }

  @Test
  void smallBlocksAreCutFromSlabsAndLargeOnesAreNot() {
    PinnedBlock block = pinned.allocate(65);
    assertThat(block.segment().byteSize()).isEqualTo(128);
    assertThat(block.address() % 64).isZero();
    assertThat(pinned.allocate(4096).segment().byteSize()).isEqualTo(4096);
    assertThat(pinned.allocate(4097).segment().byteSize()).isEqualTo(8192);
    assertThat(fake.calls("cuMemHostAlloc"))
        .containsExactly(
            "cuMemHostAlloc 65536",
            "cuMemHostAlloc 65536",
            "cuMemHostAlloc 65536",
            "cuMemHostAlloc 8192");
    assertThat(pinned.blocksInUse()).isEqualTo(4);
  }

  @Test
  void aBlockThatTheDeviceUsesIsNotGivenAway() {
    PinnedBlock block = pinned.allocate(5000);
    hold();
    pinned.useOn(block, 0);
    pinned.free(block);
    assertThat(pinned.isIdle(block)).isFalse();
    PinnedBlock next = pinned.allocate(5000);
    assertThat(next).isNotSameAs(block);
    pinned.free(next);
    open();
    assertThat(pinned.isIdle(block)).isTrue();
    assertThat(pinned.allocate(5000)).isIn(block, next);
    assertThat(events.inUse()).isZero();
  }

  @Test
  void manyWaitingBlocksComeBack() {
    hold();
    for (int i = 0; i < 100; i++) {
      PinnedBlock block = pinned.allocate(8);
      pinned.useOn(block, 0);
      pinned.free(block);
    }
    long bytes = pinned.allocatedBytes();
    open();
    for (int i = 0; i < 1023; i++) {
      pinned.allocate(8);
    }
    assertThat(pinned.allocatedBytes()).as("1024 blocks of 64 bytes").isEqualTo(bytes);
    assertThat(events.inUse()).isZero();
  }

  @Test
  void aThreadThatRecordsAllocatesWhileBlocksWait() {
    PinnedBlock block = pinned.allocate(5000);
    hold();
    pinned.useOn(block, 0);
    pinned.free(block);
    long recorded = fake.driver().streams().create(0);
    fake.driver().graphs().beginCapture(recorded);
    assertThat(pinned.allocate(5000)).isNotSameAs(block);
    fake.driver().graphs().destroy(fake.driver().graphs().endCapture(recorded));
    open();
    assertThat(pinned.allocate(5000)).isSameAs(block);
    assertThat(events.inUse()).isZero();
    fake.driver().streams().destroy(recorded);
  }

  @Test
  void aLookThatFailsLosesNoBlock() {
    PinnedBlock block = pinned.allocate(5000);
    pinned.useOn(block, 0);
    pinned.free(block);
    fake.fail(700);
    assertThatThrownBy(() -> pinned.allocate(5000)).hasMessageContaining("700");
    fake.fail(0);
    Until.holds("the stream", () -> fake.driver().streams().isIdle(0));
    assertThat(pinned.allocate(5000)).isSameAs(block);
    assertThat(events.inUse()).isZero();
  }

  @Test
  void whatIsFreeGoesBackWhereNoMoreCanBeLocked() {
    fake.memory().setMostLocked((1 << 20) + 2 * (64 << 10));
    PinnedBlock small = pinned.allocate(100);
    pinned.free(pinned.allocate(1 << 20));
    assertThat(pinned.allocatedBytes()).isEqualTo((1 << 20) + 2 * (64 << 10));
    PinnedBlock kept = allocateWhenReleased(1 << 18);
    assertThat(fake.calls("cuMemFreeHost")).hasSize(1);
    assertThat(pinned.allocatedBytes()).isEqualTo((1 << 18) + 2 * (64 << 10));
    assertThatThrownBy(() -> pinned.allocate(1 << 20))
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.isOutOfMemory()).isTrue());
    pinned.free(kept);
    pinned.free(small);
    assertThat(pinned.allocate(100)).isSameAs(small);
  }

  /** Allocates what has room only after a release, for which an allocation waits for a second. */
  private PinnedBlock allocateWhenReleased(long bytes) {
    AtomicReference<PinnedBlock> made = new AtomicReference<>();
    Until.holds(
        "a release",
        () -> {
          try {
            made.set(pinned.allocate(bytes));
            return true;
          } catch (CudaException e) {
            assertThat(e.isOutOfMemory()).isTrue();
            return false;
          }
        });
    return made.get();
  }

  @Test
  void nothingGoesBackWhileTheDeviceIsHeld() {
    PinnedBlock block = pinned.allocate(1 << 20);
    pinned.free(block);
    fake.memory().setMostLocked(0);
    mayWait.set(false);
    assertThatThrownBy(() -> pinned.allocate(1 << 18)).isInstanceOf(CudaException.class);
    assertThat(fake.calls("cuMemFreeHost")).isEmpty();
    assertThat(pinned.allocate(1 << 20)).isSameAs(block);
  }

  @Test
  void anAllocationDoesNotWaitForAKernelThatDoesNotEnd() {
    pinned.free(pinned.allocate(1 << 20));
    fake.memory().setMostLocked(0);
    hold();
    assertThatThrownBy(() -> pinned.allocate(1 << 18)).isInstanceOf(CudaException.class);
    Until.holds("the free", () -> fake.calls("cuMemFreeHost").size() == 1);
    assertThatThrownBy(() -> pinned.allocate(1 << 18)).isInstanceOf(CudaException.class);
    assertThat(fake.calls("cuMemFreeHost")).hasSize(1);
    open();
    fake.memory().setMostLocked(1 << 20);
    Until.holds("the end of the free", () -> fake.memory().locked() == PinnedAllocator.SLAB_BYTES);
    assertThat(pinned.allocate(1 << 18).segment().byteSize()).isEqualTo(1 << 18);
  }

  @Test
  void aUseThatCannotBeRecordedKeepsNoEvent() {
    PinnedBlock block = pinned.allocate(8);
    fake.failOn("cuEventRecord", 1, 700);
    assertThatThrownBy(() -> pinned.useOn(block, 0)).hasMessageContaining("cuEventRecord");
    assertThat(events.inUse()).isZero();
    pinned.free(block);
    assertThatThrownBy(() -> pinned.free(block)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> pinned.allocate(0)).isInstanceOf(IllegalArgumentException.class);
  }
}
