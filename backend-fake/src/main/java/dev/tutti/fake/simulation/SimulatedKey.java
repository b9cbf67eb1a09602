package dev.tutti.fake.simulation;

import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectionKey;
import java.nio.channels.spi.AbstractSelector;

/** The registration of a channel with a selector. */
final class SimulatedKey extends AbstractSelectionKey {
  private final AbstractSelector selector;
  private final Runnable wake;
  private final Runnable watcher = this::changed;
  private final SimulatedChannel channel;
  private int interest;

  /** The interest at the start of the latest select; a later change needs another select. */
  private int armed;

  private int ready;

  /**
   * Creates a registration.
   *
   * @param wake makes the thread that waits in the selector look again
   */
  SimulatedKey(AbstractSelector selector, SimulatedChannel channel, Runnable wake) {
    this.selector = selector;
    this.wake = wake;
    this.channel = channel;
  }

  /** Begins or ends to watch the channel. */
  void watch(boolean watches) {
    if (watches) {
      channel.watchers().add(watcher);
    } else {
      channel.watchers().remove(watcher);
    }
  }

  @Override
  public SelectableChannel channel() {
    return (SelectableChannel) channel;
  }

  @Override
  public Selector selector() {
    return selector;
  }

  private void requireValid() {
    if (!isValid()) {
      throw new CancelledKeyException();
    }
  }

  @Override
  public int interestOps() {
    requireValid();
    return interest;
  }

  @Override
  public SelectionKey interestOps(int ops) {
    requireValid();
    if ((ops & ~channel().validOps()) != 0) {
      throw new IllegalArgumentException("operations " + ops);
    }
    interest = ops;
    return this;
  }

  @Override
  public int readyOps() {
    requireValid();
    return ready;
  }

  void arm() {
    armed = isValid() ? interest : 0;
  }

  /** Returns whether the latest select is to find the channel. */
  boolean isReady() {
    return isValid() && channel.isOpen() && (channel.readyOps() & armed) != 0;
  }

  /** Notes what the channel is ready for. */
  void found() {
    ready = channel.readyOps() & armed;
  }

  private void changed() {
    if (isReady()) {
      wake.run();
    }
  }
}
