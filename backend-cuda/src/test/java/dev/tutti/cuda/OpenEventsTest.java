package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests that events are known as long as they may have something of the driver's, not longer. */
class OpenEventsTest {
  private static final int MANY = 10_000;
  private static final int BOUND = 64;

  private final FakeMachine machine = new FakeMachine(1);
  private final CudaDevice device = machine.cuda.device(0);
  private final OpenEvents open = new OpenEvents();

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  private void record(CudaEvent event) {
    open.add(event);
    device.context().enter();
    event.recordIn(device.defaultStream().handle());
  }

  @Test
  void forgetsWhatSomebodySawReached() {
    for (int i = 0; i < MANY; i++) {
      CudaEvent event = new CudaEvent(device);
      record(event);
      assertThat(event.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
      assertThat(open.size()).isLessThanOrEqualTo(BOUND);
    }
    open.close();
    assertThat(device.events().inUse()).isZero();
  }

  @Test
  void keepsWhatNobodySawReachedAndWhatIsRecordedAgain() {
    CudaEvent again = new CudaEvent(device);
    for (int i = 0; i < MANY; i++) {
      record(again);
      assertThat(again.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    }
    assertThat(open.size()).isOne();
    record(again);
    for (int i = 0; i < 3 * BOUND; i++) {
      record(new CudaEvent(device));
    }
    assertThat(open.size()).isEqualTo(3 * BOUND + 1);
    assertThat(device.events().inUse()).isEqualTo(3 * BOUND + 1);
    open.close();
    assertThat(device.events().inUse()).isZero();
    assertThat(open.size()).isZero();
  }
}
