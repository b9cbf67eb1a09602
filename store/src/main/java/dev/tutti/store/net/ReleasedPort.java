package dev.tutti.store.net;

import dev.tutti.spi.Time;
import java.util.concurrent.TimeUnit;

/**
 * A port of this host that may stay in use for a moment after it was released: a process that is
 * being started has copies of all sockets of its parent until it runs its program.
 */
public final class ReleasedPort {
  /** How the JDK says on Linux, and Aeron after it, that a port is in use. */
  private static final String IN_USE = "Address already in use";

  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private ReleasedPort() {}

  /** Binds a port. */
  @FunctionalInterface
  public interface Binding<T, E extends Exception> {
    /** Binds the port once. */
    T bind() throws E;
  }

  /**
   * Binds a port, and tries again for at most two seconds while the port is in use.
   *
   * @param time by which it waits
   * @param binding binds the port; called by this thread
   * @return what the last call of {@code binding} returned
   * @throws E if the port cannot be bound
   */
  public static <T, E extends Exception> T bind(Time time, Binding<T, E> binding) throws E {
    long deadline = time.nanoTime() + PATIENCE_NANOS;
    while (true) {
      try {
        return binding.bind();
      } catch (Exception e) {
        if (!String.valueOf(e.getMessage()).contains(IN_USE) || time.nanoTime() - deadline >= 0) {
          throw e;
        }
        time.park(binding, PAUSE_NANOS);
      }
    }
  }
}
