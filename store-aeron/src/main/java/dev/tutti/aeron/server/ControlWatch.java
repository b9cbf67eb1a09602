package dev.tutti.aeron.server;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.LogNames;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Selector;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** Looks after the control connections of a server whose own thread sleeps in its bell's word. */
final class ControlWatch implements Runnable {
  /*
   * It only finds that there is something to hear, wakes the server's thread, and waits until that has
   * heard it: of the selector one of the two is a user at a time.
   */
  private static final Logger LOG = System.getLogger(LogNames.SERVER);

  private final Selector selector;
  private final Doorbell bell;
  private final Consumer<Throwable> failed;
  private final Thread thread = EmbeddedDriver.daemon("tutti-as-hear", this);
  private volatile boolean due;

  /**
   * Creates one.
   *
   * @param selector has the connections
   * @param bell wakes the server's thread
   * @param failed is told what ends this other than the end of the server
   */
  ControlWatch(Selector selector, Doorbell bell, Consumer<Throwable> failed) {
    this.failed = failed;
    this.selector = selector;
    this.bell = bell;
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
        bell.wakeSleeper();
        while (due && selector.isOpen()) {
          LockSupport.park(this);
        }
      }
    } catch (ClosedSelectorException e) {
      LOG.log(Level.DEBUG, "the server ended", e);
    } catch (IOException | RuntimeException | Error e) {
      // Nobody would see clients that leave.
      failed.accept(e);
    }
  }

  /** Tells whether there is something to hear; then the selector is the caller's. */
  boolean isDue() {
    return due;
  }

  /** Takes the selector back from the server's thread. */
  void goOn() {
    due = false;
    LockSupport.unpark(thread);
  }

  /** Ends, as the selector is closed, before the memory of the bell goes. */
  void end() {
    LockSupport.unpark(thread);
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
