package dev.tutti.spi;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;

/** Works on channels in threads that may be interrupted, which closes the channels under them. */
public final class Uninterrupted {
  private Uninterrupted() {}

  /**
   * Opens a channel and uses it.
   *
   * @param <T> what comes of it
   */
  public interface Work<T> {
    /** Does all of it, from the start. */
    T run() throws IOException;
  }

  /**
   * Does some work, once more each time that an interrupt ends it; the thread is interrupted
   * afterwards if it was meanwhile.
   *
   * @param <T> what comes of it
   * @param work opens what it uses, and closes it
   * @return what the work returns
   * @throws IOException if the work fails for another reason
   */
  public static <T> T run(Work<T> work) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      while (true) {
        try {
          return work.run();
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
