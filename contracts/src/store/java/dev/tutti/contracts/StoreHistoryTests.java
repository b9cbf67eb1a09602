package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.contracts.history.HistoryRun;
import dev.tutti.store.PrefixStore;
import org.junit.jupiter.api.Test;

/** A test that what concurrent clients observe is what a correct store answers. */
interface StoreHistoryTests extends StoreFixture {

  @Test
  default void randomCallsOfConcurrentClientsAreConsistent() throws Exception {
    int seeds = TestTier.isFast() ? 1 : 4;
    for (int seed = 0; seed < seeds; seed++) {
      Store part = new PrefixStore("history" + seed, store());
      try (HistoryRun run =
          new HistoryRun(seed, 4, acknowledges(), HistoryRun.MOST_BYTES, part::duplicate, time())) {
        run.awaitAnswers(1000);
        assertThat(run.end()).as("seed %d", seed).isEmpty();
      }
    }
  }
}
