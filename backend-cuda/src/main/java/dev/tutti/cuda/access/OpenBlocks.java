package dev.tutti.cuda.access;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** The stream blocks that were not closed, so that closing the driver can release them. */
public final class OpenBlocks {
  private final Set<Runnable> open = Collections.newSetFromMap(new IdentityHashMap<>());

  /** Adds a block; running it closes it. */
  public synchronized void add(Runnable block) {
    open.add(block);
  }

  /** Removes a block that is closed. */
  public synchronized void remove(Runnable block) {
    open.remove(block);
  }

  /** Returns the number of open blocks. */
  public synchronized int count() {
    return open.size();
  }

  /** Closes all blocks. */
  public void releaseAll() {
    List<Runnable> all;
    synchronized (this) {
      all = List.copyOf(open);
    }
    all.forEach(Runnable::run);
  }
}
