package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Batch;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.contracts.TestTier;
import dev.tutti.fake.ThreadedWorld;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that a rank that leaves while its connections are still being made harms no other rank: so
 * many ranks exchange messages through shared memory before all of them have connected.
 */
class EarlyLeaveTest {
  private static final int RANKS = 10;
  private static final int ROUNDS =
      Integer.getInteger("tutti.leaveRounds", TestTier.isFast() ? 15 : 50);

  @Test
  @Timeout(600)
  void whatARankSentBeforeItLeftArrives() {
    for (int round = 0; round < ROUNDS; round++) {
      ThreadedWorld.of(RANKS)
          .withProvider(new GlooProvider())
          .withTimeout(Duration.ofMinutes(3))
          .run(EarlyLeaveTest::exchange);
    }
  }

  /** Exchanges a message with each other rank, and returns, which closes the group. */
  private static void exchange(ProcessGroup group) {
    Batch batch = group.batch();
    List<Tensor> received = new ArrayList<>();
    for (int step = 1; step < RANKS; step++) {
      int from = (group.rank() + RANKS - step) % RANKS;
      int to = (group.rank() + step) % RANKS;
      Tensor target = Tensor.of(new int[5000]);
      received.add(target);
      batch.recv(target, from, 4);
      int[] sent = new int[5000];
      sent[4999] = 100 * group.rank() + to;
      batch.send(Tensor.of(sent), to, 4);
    }
    batch.run();
    for (int step = 1; step < RANKS; step++) {
      int from = (group.rank() + RANKS - step) % RANKS;
      assertThat(received.get(step - 1).toIntArray()[4999]).isEqualTo(100 * from + group.rank());
    }
  }
}
