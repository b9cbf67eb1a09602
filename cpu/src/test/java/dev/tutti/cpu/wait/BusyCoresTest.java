package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class BusyCoresTest {
  private static final long MS = Duration.ofMillis(1).toNanos();
  private static final long SLICE = 4 * MS;

  private final BusyCores cores = new BusyCores();

  @Test
  void shortYieldsMeanNothing() {
    assertThat(cores.areBusy(0)).isFalse();
    for (long now = 0; now < 1000 * MS; now += MS / 2) {
      cores.yielded(now, now + MS / 2);
      assertThat(cores.areBusy(now + MS / 2)).isFalse();
    }
  }

  @Test
  void aLongYieldIsFollowedByAShortPause() {
    cores.yielded(0, SLICE);
    assertThat(cores.areBusy(SLICE)).isTrue();
    assertThat(cores.areBusy(SLICE + 5 * MS - 1)).isTrue();
    assertThat(cores.areBusy(SLICE + 5 * MS)).isFalse();
  }

  @Test
  void pausesGrowWhileTheCoresStayBusy() {
    long now = 0;
    for (long pause : new long[] {5, 10, 20, 40, 80, 160, 160}) {
      cores.yielded(now, now + SLICE);
      now += SLICE + pause * MS;
      assertThat(cores.areBusy(now - 1)).isTrue();
      assertThat(cores.areBusy(now)).isFalse();
    }
  }

  @Test
  void aPauseIsShortAgainAfterShortYieldsOfThatTime() {
    cores.yielded(0, SLICE);
    cores.yielded(SLICE + 5 * MS, 2 * SLICE + 5 * MS);
    long now = 2 * SLICE + 15 * MS;
    for (int i = 0; i < 20; i++) {
      cores.yielded(now, now + MS / 2);
      now += MS / 2;
    }
    cores.yielded(now, now + SLICE);
    assertThat(cores.areBusy(now + SLICE + 5 * MS)).isFalse();
  }

  @Test
  void pausesGrowAlsoWhereTheRankComputesBetweenItsWaits() {
    long now = 0;
    for (long pause : new long[] {5, 10, 20, 40, 80, 160, 160}) {
      cores.yielded(now, now + SLICE);
      assertThat(cores.areBusy(now + SLICE + pause * MS - 1)).isTrue();
      assertThat(cores.areBusy(now + SLICE + pause * MS)).isFalse();
      now += 1000 * MS;
      cores.yielded(now, now + MS / 2);
      now += 1000 * MS;
    }
  }

  @Test
  void pausesOfAStoreAreLongFromTheFirst() {
    BusyCores store = BusyCores.ofStore();
    for (long now : new long[] {0, SLICE + 100 * MS, 1000 * MS}) {
      store.yielded(now, now + SLICE);
      assertThat(store.areBusy(now + SLICE + 100 * MS - 1)).isTrue();
      assertThat(store.areBusy(now + SLICE + 100 * MS)).isFalse();
    }
  }
}
