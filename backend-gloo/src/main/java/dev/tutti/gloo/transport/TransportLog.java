package dev.tutti.gloo.transport;

import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import java.io.Closeable;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/** What a rank logs of its transport. Any thread may call. */
final class TransportLog {
  private static final Logger LOG = System.getLogger("dev.tutti.gloo.transport.Transport");

  private final String self;
  private final LimitedLog strangers;

  TransportLog(String self, Time time) {
    this.self = self;
    strangers = new LimitedLog(LOG, time);
  }

  /** Returns the name of this rank and its group. */
  String self() {
    return self;
  }

  void warn(String what, @Nullable Throwable cause) {
    LOG.log(Level.WARNING, self + ": " + what, cause);
  }

  /** Warns, at a limited rate, of something that anybody who reaches this rank's port can cause. */
  void warnOfStranger(String cause, String address, String what) {
    strangers.warn(cause, address, self + ": " + what);
  }

  /** Logs how often warnings of strangers were held back. */
  void closeStrangers() {
    strangers.close();
  }

  void debug(String what, @Nullable Throwable cause) {
    LOG.log(Level.DEBUG, self + ": " + what, cause);
  }

  /**
   * Closes something that may already be unusable.
   *
   * @param problem what to log if that fails
   */
  void closeQuietly(Closeable resource, String problem) {
    try {
      resource.close();
    } catch (IOException e) {
      debug(problem, e);
    }
  }
}
