package dev.tutti.fake.simulation;

import java.io.IOException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A selector of simulated channels, which finds those that are ready in a random order. */
final class SimulatedSelector extends TimedSelector {
  /*
   * As with epoll, a change of interest and a new channel count from the next select on, and the
   * close of a channel wakes nobody. What only works where they do is thus found.
   */
  private static final int MOST_LOOKS = 100_000;

  private final NetworkTime network;
  private final Set<SelectionKey> keys = new LinkedHashSet<>();
  private @Nullable Thread waiting;
  private boolean woken;
  private long lastLook;
  private int inVain;

  SimulatedSelector(SelectorProvider provider, NetworkTime network) {
    super(provider);
    this.network = network;
  }

  @Override
  protected SelectionKey register(AbstractSelectableChannel channel, int ops, Object attachment) {
    if (!(channel instanceof SimulatedChannel simulated)) {
      throw new IllegalArgumentException(channel + " is not simulated");
    }
    SimulatedKey key = new SimulatedKey(this, simulated, this::wake);
    key.attach(attachment);
    key.interestOps(ops);
    keys.add(key);
    key.watch(true);
    return key;
  }

  @Override
  int selectFor(Consumer<SelectionKey> action, long nanos) throws IOException {
    requireOpen();
    dropCancelled();
    keys.forEach(key -> ((SimulatedKey) key).arm());
    if (nanos > 0) {
      await(nanos);
    }
    woken = false;
    if (!isOpen()) {
      return 0;
    }
    List<SimulatedKey> ready = ready();
    requireProgress(ready);
    network.shuffle(ready);
    ready.forEach(SimulatedKey::found);
    for (SimulatedKey key : ready) {
      action.accept(key);
      requireOpen();
    }
    return ready.size();
  }

  /** Fails a thread that finds channels ready for ever and does nothing with them. */
  private void requireProgress(List<SimulatedKey> ready) {
    long now = network.nowNanos();
    inVain = now == lastLook ? inVain + 1 : 0;
    lastLook = now;
    if (inVain == MOST_LOOKS) {
      throw new IllegalStateException(
          "no time passes between %d looks at ready channels: %s"
              .formatted(MOST_LOOKS, ready.stream().map(SelectionKey::channel).toList()));
    }
  }

  private void await(long nanos) {
    Thread self = Thread.currentThread();
    long now = network.nowNanos();
    long until = nanos > Long.MAX_VALUE - now ? Long.MAX_VALUE : now + nanos;
    waiting = self;
    SimulatedScheduler.Timer timer = network.wakeAt(until, self);
    while (!woken
        && isOpen()
        && !self.isInterrupted()
        && network.nowNanos() < until
        && ready().isEmpty()) {
      LockSupport.park(this);
    }
    network.cancel(timer);
    waiting = null;
  }

  private List<SimulatedKey> ready() {
    List<SimulatedKey> ready = new ArrayList<>();
    for (SelectionKey key : keys) {
      SimulatedKey simulated = (SimulatedKey) key;
      if (simulated.isReady()) {
        ready.add(simulated);
      }
    }
    return ready;
  }

  private void dropCancelled() {
    Set<SelectionKey> cancelled = cancelledKeys();
    synchronized (cancelled) {
      for (SelectionKey key : cancelled) {
        drop((SimulatedKey) key);
      }
      cancelled.clear();
    }
  }

  private void drop(SimulatedKey key) {
    keys.remove(key);
    key.watch(false);
    deregister(key);
  }

  /** Makes the waiting thread look again. */
  void wake() {
    LockSupport.unpark(waiting);
  }

  @Override
  public Selector wakeup() {
    woken = true;
    wake();
    return this;
  }

  @Override
  protected void implCloseSelector() {
    wake();
    dropCancelled();
    for (SelectionKey key : List.copyOf(keys)) {
      key.cancel();
      drop((SimulatedKey) key);
    }
  }

  private void requireOpen() {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
  }

  @Override
  public Set<SelectionKey> keys() {
    requireOpen();
    return Collections.unmodifiableSet(keys);
  }

  @Override
  public int selectNow(Consumer<SelectionKey> action) throws IOException {
    return selectFor(action, 0);
  }

  @Override
  public Set<SelectionKey> selectedKeys() {
    throw new UnsupportedOperationException("only selects with an action are simulated");
  }

  @Override
  public int selectNow() {
    throw new UnsupportedOperationException("only selects with an action are simulated");
  }

  @Override
  public int select(long millis) {
    throw new UnsupportedOperationException("only selects with an action are simulated");
  }

  @Override
  public int select() {
    throw new UnsupportedOperationException("only selects with an action are simulated");
  }
}
