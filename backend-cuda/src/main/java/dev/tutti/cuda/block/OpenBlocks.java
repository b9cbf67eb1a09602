package dev.tutti.cuda.block;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** The stream blocks that were not closed, so that closing the driver can release them. */
public final class OpenBlocks {
  private final Set<BlockState> open = Collections.newSetFromMap(new IdentityHashMap<>());

  synchronized void add(BlockState block) {
    open.add(block);
  }

  synchronized void remove(BlockState block) {
    open.remove(block);
  }

  public synchronized int count() {
    return open.size();
  }

  public void releaseAll() {
    List<BlockState> all;
    synchronized (this) {
      all = List.copyOf(open);
    }
    all.forEach(BlockState::close);
  }
}
