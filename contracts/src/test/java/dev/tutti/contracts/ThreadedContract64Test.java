package dev.tutti.contracts;

import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import org.junit.jupiter.api.Tag;

/** Runs the whole suite on 64 ranks. */
@Tag("full")
class ThreadedContract64Test extends ProcessGroupContract {
  @Override
  protected BackendProvider provider() {
    return new ThreadedProvider();
  }

  @Override
  protected int[] worldSizes() {
    return new int[] {64};
  }

  @Override
  protected Duration timeout() {
    return Duration.ofMinutes(3);
  }
}
