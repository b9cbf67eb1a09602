package dev.tutti.fake;

import dev.tutti.GroupOptions;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The options of a {@link ThreadedWorld}; not changed once a world has them. */
final class WorldOptions implements Cloneable {
  final int size;
  Duration timeout;
  Time time;
  UnaryOperator<GroupOptions> options = UnaryOperator.identity();
  BackendProvider provider = new ThreadedProvider();
  @Nullable Faults faults;
  @Nullable CallRecorder recorder;
  @Nullable ThreadGroup threads;

  WorldOptions(int size, Duration timeout, Time time) {
    this.size = size;
    this.timeout = timeout;
    this.time = time;
  }

  WorldOptions copy() {
    try {
      return (WorldOptions) clone();
    } catch (CloneNotSupportedException e) {
      throw new AssertionError(e);
    }
  }

  ThreadGroup threads() {
    return threads == null ? Thread.currentThread().getThreadGroup() : threads;
  }

  boolean isKilled(int rank) {
    return faults != null && faults.isKilled(rank);
  }

  GroupOptions complete(GroupOptions given) {
    BackendProvider inner = provider;
    if (faults != null) {
      inner = new FaultyProvider(inner, faults);
    }
    if (recorder != null) {
      inner = recorder.wrap(inner);
    }
    return options.apply(given.withTimeout(timeout).withTime(time).withProvider(inner));
  }
}
