package dev.tutti.cli.process;

import dev.tutti.runtime.signal.SignalHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * A handler of the signals that would end this process, active until closed.
 *
 * <p>On a JVM without {@code sun.misc.Signal}, no signals are handled, and the launcher's shutdown
 * hook ends the ranks.
 */
public final class Signals implements AutoCloseable {
  private static final int[] HANDLED = {Posix.SIGTERM, Posix.SIGINT, Posix.SIGHUP};

  private final List<Runnable> restore = new ArrayList<>();

  private Signals() {}

  /**
   * Starts passing signals to a listener instead of their previous handlers.
   *
   * @param listener receives the signal's number, on a thread of the JVM
   */
  public static Signals handle(IntConsumer listener) {
    Signals signals = new Signals();
    for (int signal : HANDLED) {
      try {
        String name = Posix.signalName(signal).substring(3);
        signals.restore.add(SignalHandler.install(name, () -> listener.accept(signal))::restore);
      } catch (ReflectiveOperationException | IllegalArgumentException e) {
        System.getLogger("dev.tutti.cli")
            .log(System.Logger.Level.WARNING, "cannot forward " + Posix.signalName(signal), e);
      }
    }
    return signals;
  }

  /** Restores the previous handlers of the signals. */
  @Override
  public void close() {
    restore.forEach(Runnable::run);
    restore.clear();
  }
}
