package dev.tutti.gloo;

import java.time.Duration;
import org.junit.jupiter.api.Tag;

/**
 * Runs the contract suite with so many ranks that they do not all connect at the rendezvous: ten,
 * or 64 with {@code -Dtutti.ranks=64}.
 */
@Tag("full")
class ManyRanksContractTest extends GlooContractTest {
  private static final int RANKS = Integer.getInteger("tutti.ranks", 10);

  @Override
  protected int[] worldSizes() {
    return new int[] {RANKS};
  }

  @Override
  protected Duration timeout() {
    return Duration.ofSeconds(120 + 2L * RANKS);
  }
}
