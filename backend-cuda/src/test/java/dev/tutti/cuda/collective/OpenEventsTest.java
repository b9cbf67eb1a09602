package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests that events are tracked exactly as long as they may hold driver resources. */
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
    Parts.of(device).context().enter();
    Parts.of(event).recordIn(device.defaultStream().handle());
  }

  @Test
  void forgetsWhatSomebodySawReached() {
    for (int i = 0; i < MANY; i++) {
      CudaEvent event = Parts.of(device).owner().event();
      record(event);
      assertThat(event.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
      assertThat(open.size()).isLessThanOrEqualTo(BOUND);
    }
    open.close();
    assertThat(Parts.of(device).events().inUse()).isZero();
  }

  @Test
  void keepsWhatNobodySawReachedAndWhatIsRecordedAgain() {
    CudaEvent again = Parts.of(device).owner().event();
    for (int i = 0; i < MANY; i++) {
      record(again);
      assertThat(again.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    }
    assertThat(open.size()).isOne();
    record(again);
    for (int i = 0; i < 3 * BOUND; i++) {
      record(Parts.of(device).owner().event());
    }
    assertThat(open.size()).isEqualTo(3 * BOUND + 1);
    assertThat(Parts.of(device).events().inUse()).isEqualTo(3 * BOUND + 1);
    open.close();
    assertThat(Parts.of(device).events().inUse()).isZero();
    assertThat(open.size()).isZero();
  }
}
