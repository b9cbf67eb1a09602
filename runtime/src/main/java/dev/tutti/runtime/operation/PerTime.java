package dev.tutti.runtime.operation;

import dev.tutti.spi.Time;
import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Keeps what there is once in a process, which is once for each time: simulated processes, of which
 * a JVM has several, each have a time of their own. Safe for use by multiple threads.
 *
 * @param <T> the type of what is kept; it ends with the time unless threads still use it
 */
public final class PerTime<T> {
  private final Function<Time, T> maker;
  private final T ofSystem;
  private final Map<Time, WeakReference<T>> others = new WeakHashMap<>();

  /**
   * Creates the one of this machine's time.
   *
   * @param maker creates one for a time
   */
  public PerTime(Function<Time, T> maker) {
    this.maker = maker;
    this.ofSystem = maker.apply(Time.SYSTEM);
  }

  /** Returns the one of a time, and creates it if there is none. */
  public T of(Time time) {
    if (time.equals(Time.SYSTEM)) {
      return ofSystem;
    }
    synchronized (others) {
      WeakReference<T> known = others.get(time);
      @Nullable T there = known == null ? null : known.get();
      if (there == null) {
        there = maker.apply(time);
        others.put(time, new WeakReference<>(there));
      }
      return there;
    }
  }
}
