package dev.tutti.runtime.signal;

import java.lang.System.Logger.Level;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Writes the flight records of all ranks of this process on the signal USR1. */
public final class DumpSignal {
  private static final System.Logger LOG = System.getLogger(DumpSignal.class.getName());
  private static final String SIGNAL = "USR1";

  private static final Set<Runnable> DUMPS = ConcurrentHashMap.newKeySet();
  private static @Nullable SignalHandler handler;

  private DumpSignal() {}

  /**
   * Takes over the signal, unless the program already has; from then on the signal also runs an
   * action.
   *
   * @param dump the action, which writes the flight records of a rank
   */
  public static synchronized void add(Runnable dump) {
    DUMPS.add(dump);
    if (handler != null) {
      return;
    }
    try {
      SignalHandler installed = SignalHandler.install(SIGNAL, () -> DUMPS.forEach(Runnable::run));
      handler = installed;
      if (!installed.wasDefault()) {
        installed.restore();
      }
    } catch (ReflectiveOperationException | IllegalArgumentException e) {
      LOG.log(Level.DEBUG, "SIG" + SIGNAL + " will not write flight records", e);
    }
  }

  /**
   * Undoes {@link #add}, and gives the signal back after the last action.
   *
   * @param dump the action
   */
  public static synchronized void remove(Runnable dump) {
    if (DUMPS.remove(dump) && DUMPS.isEmpty() && handler != null) {
      handler.restore();
      handler = null;
    }
  }
}
