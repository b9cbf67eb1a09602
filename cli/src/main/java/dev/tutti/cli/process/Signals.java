package dev.tutti.cli.process;

import dev.tutti.runtime.signal.SignalHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * Takes over the signals that would end this process, until closed.
 *
 * <p>On a JVM without {@code sun.misc.Signal} nothing is taken over, and the launcher's shutdown
 * hook ends the ranks.
 */
public final class Signals implements AutoCloseable {
  private static final int[] HANDLED = {Posix.SIGTERM, Posix.SIGINT, Posix.SIGHUP};

  private final List<Runnable> restore = new ArrayList<>();

  private Signals() {}

  /**
   * Starts to hand signals to a listener in place of what they did before.
   *
   * @param listener takes the signal's number, on a thread of the JVM's
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

  /** Gives the signals back to whom they were taken from. */
  @Override
  public void close() {
    restore.forEach(Runnable::run);
    restore.clear();
  }
}
