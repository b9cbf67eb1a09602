package dev.tutti.fake.simulation;

import java.io.IOException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.Channel;
import java.nio.channels.ClosedByInterruptException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;

/** The selectors and threads that wait for one channel. */
final class Watchers {
  private final Channel channel;
  private final IntSupplier readyOps;
  private final List<Runnable> selectors = new ArrayList<>();
  private final List<Thread> blocked = new ArrayList<>();

  /**
   * Creates the watchers of a channel.
   *
   * @param readyOps returns the operations that would not block
   */
  Watchers(Channel channel, IntSupplier readyOps) {
    this.channel = channel;
    this.readyOps = readyOps;
  }

  void add(Runnable selector) {
    selectors.add(selector);
  }

  void remove(Runnable selector) {
    selectors.remove(selector);
  }

  /** Wakes those that wait for what may be possible now. */
  void changed() {
    List.copyOf(selectors).forEach(Runnable::run);
    blocked.forEach(LockSupport::unpark);
  }

  /**
   * Waits until one of some operations is possible.
   *
   * @throws ClosedByInterruptException if the thread is interrupted, after closing the channel
   * @throws AsynchronousCloseException if another thread closes the channel
   */
  void await(int ops) throws IOException {
    Thread self = Thread.currentThread();
    blocked.add(self);
    try {
      while (channel.isOpen() && (readyOps.getAsInt() & ops) == 0) {
        if (self.isInterrupted()) {
          channel.close();
          throw new ClosedByInterruptException();
        }
        LockSupport.park(channel);
      }
    } finally {
      blocked.remove(self);
    }
    if (!channel.isOpen()) {
      throw new AsynchronousCloseException();
    }
  }
}
