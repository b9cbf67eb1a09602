package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SlotTableTest {
  @Test
  void behavesLikeAMap() {
    Random random = new Random(7);
    SlotTable table = new SlotTable();
    Map<Long, Integer> reference = new HashMap<>();
    for (int i = 0; i < 200_000; i++) {
      long slot = random.nextInt(300) * (random.nextBoolean() ? 1L : 1L << 24);
      SlotState state = table.findOrAdd(slot);
      assertThat(state.slot).isEqualTo(slot);
      assertThat(state.remoteSends).isEqualTo(reference.getOrDefault(slot, 0));
      state.remoteSends = random.nextInt(3);
      reference.put(slot, state.remoteSends);
      if (state.remoteSends == 0) {
        reference.remove(slot);
      }
      table.removeIfIdle(state);
      assertThat(table.size()).isEqualTo(reference.size());
    }
    for (long slot = 0; slot < 300; slot++) {
      SlotState state = table.find(slot);
      assertThat(state == null ? 0 : state.remoteSends).isEqualTo(reference.getOrDefault(slot, 0));
    }
  }
}
