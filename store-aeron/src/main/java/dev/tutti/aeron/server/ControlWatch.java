package dev.tutti.aeron.server;

import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.LogNames;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Selector;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** A thread that watches the control connections of a server. */
final class ControlWatch implements Runnable {
  /*
   * This thread only detects that there is something to read, wakes the server's thread, and waits
   * until that thread has read it. The selector is thus used by only one of the two at a time.
   */
  private static final Logger LOG = System.getLogger(LogNames.SERVER);

  private final Selector selector;
  private final Runnable wake;
  private final Consumer<Throwable> failed;
  private final Thread thread = EmbeddedDriver.daemon("tutti-as-watch", this);
  private volatile boolean due;

  /**
   * Creates a watch.
   *
   * @param selector the selector, which has the connections
   * @param wake wakes the server's thread
   * @param failed receives the failure that ends this thread, other than the end of the server
   */
  ControlWatch(Selector selector, Runnable wake, Consumer<Throwable> failed) {
    this.failed = failed;
    this.selector = selector;
    this.wake = wake;
  }

  void start() {
    thread.start();
  }

  @Override
  public void run() {
    try {
      while (selector.isOpen()) {
        selector.select(key -> {});
        due = true;
        wake.run();
        while (due && selector.isOpen()) {
          LockSupport.park(this);
        }
      }
    } catch (ClosedSelectorException e) {
      LOG.log(Level.DEBUG, "the server ended", e);
    } catch (IOException | RuntimeException | Error e) {
      // Otherwise nobody would notice clients that leave.
      failed.accept(e);
    }
  }

  /** Returns whether there is something to read; if so, the caller may use the selector. */
  boolean isDue() {
    return due;
  }

  /** Takes the selector back from the server's thread. */
  void goOn() {
    due = false;
    LockSupport.unpark(thread);
  }

  /** Ends this thread once the selector is closed, before the memory of the bell is released. */
  void end() {
    LockSupport.unpark(thread);
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
