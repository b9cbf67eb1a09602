package dev.tutti.fake.simulation;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;
import java.util.function.Consumer;

/** A selector that waits in simulated time. */
abstract class TimedSelector extends AbstractSelector {
  TimedSelector(SelectorProvider provider) {
    super(provider);
  }

  /**
   * Waits for channels.
   *
   * @param nanos the maximum simulated time in nanoseconds; only looks if not positive
   */
  abstract int selectFor(Consumer<SelectionKey> action, long nanos) throws IOException;
}
