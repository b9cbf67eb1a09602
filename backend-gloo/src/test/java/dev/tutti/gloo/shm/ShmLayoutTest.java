package dev.tutti.gloo.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.gloo.transport.ring.RingMemory;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShmLayoutTest {
  @ParameterizedTest
  @CsvSource({
    "2, 16777216, 262144, 262144",
    "4, 16777216, 262144, 262144",
    "8, 16777216, 65536, 262144",
    "16, 16777216, 16384, 262144",
    "31, 16777216, 4096, 196608",
    "32, 16777216, 0, 249856",
    "2, 65536, 0, 4096",
    "1, 16777216, 0, 262144"
  })
  void aQuarterAtMostIsForRings(int ranks, long budget, long ring, long stage) {
    ShmLayout layout = ShmLayout.within(ranks, budget);
    assertThat(layout.ringBytes()).isEqualTo(ring);
    assertThat(layout.stageBytes()).isEqualTo(stage);
    assertThat(layout.bytes()).isLessThanOrEqualTo(budget);
  }

  @Test
  void nothingOverlaps() {
    for (int ranks = 2; ranks < 9; ranks++) {
      ShmLayout layout = ShmLayout.within(ranks, 1 << 20);
      TreeMap<Long, Long> parts = new TreeMap<>();
      for (int rank = 0; rank < ranks; rank++) {
        parts.put(ShmLayout.joined(rank), 8L);
        parts.put(layout.control(rank), 128L);
        parts.put(layout.sleep(rank), (long) RingMemory.LINE);
        for (int i = 0; i < 2; i++) {
          parts.put(layout.slot(rank, i), (long) ShmLayout.SLOT_HEADER + ShmLayout.SLOT_BYTES);
          parts.put(layout.stage(rank, i), layout.stageBytes());
        }
        for (int to = 0; to < ranks; to++) {
          if (to != rank) {
            parts.put(layout.ring(rank, to), RingMemory.HEADER + layout.ringBytes());
          }
        }
      }
      assertThat(parts).hasSize(ranks * (7 + ranks - 1));
      long end = 8;
      for (var part : parts.entrySet()) {
        assertThat(part.getKey()).isGreaterThanOrEqualTo(end);
        end = part.getKey() + part.getValue();
      }
      assertThat(end).isLessThanOrEqualTo(layout.bytes());
    }
  }

  @Test
  void saysHowMuchIsNeeded() {
    assertThatThrownBy(() -> ShmLayout.within(3, 64 * 1024))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("3 ranks need at least")
        .hasMessageContaining("not 65536");
  }

  @Test
  void ranksThatAreTooManyForTheMemoryAreRefused() {
    int most = 0;
    for (long budget : new long[] {1 << 20, 4 << 20, 16 << 20, 256 << 20}) {
      for (int ranks = 2; ranks <= 512; ranks++) {
        ShmLayout layout;
        try {
          layout = ShmLayout.within(ranks, budget);
        } catch (IllegalArgumentException e) {
          assertThat(e).hasMessageContaining(ranks + " ranks");
          continue;
        }
        assertThat(Parts.piece(layout.stageBytes(), ranks)).as("%d ranks", ranks).isPositive();
        assertThat(24L * ranks + 24).isLessThanOrEqualTo(ShmLayout.SLOT_BYTES);
        assertThat(layout.bytes()).isLessThanOrEqualTo(budget);
        most = Math.max(most, ranks);
      }
    }
    assertThat(most).isEqualTo(340);
  }
}
