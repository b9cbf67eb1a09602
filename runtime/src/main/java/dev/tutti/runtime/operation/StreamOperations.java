package dev.tutti.runtime.operation;

import dev.tutti.WorkState;
import dev.tutti.spi.DeviceEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Holds the stream-ordered collectives whose callers got no work, in the order of their issue, and
 * uses the ones that have ended again: issuing one allocates nothing once there are as many as the
 * device is ever behind.
 */
public final class StreamOperations {
  /*
   * A ring: the operations from "head" to before "tail" are in use, the one at "tail" is next. The thread that holds
   * the queue issues it and then moves the tail. A device reaches a group's collectives in the order of
   * their issue, so whether one is done says it of all before that have an event, as those have not that
   * were recorded into a graph or refused; the last that is done is searched by halving, since each look is
   * a call of the driver. Looks are made without the monitor, for they can fail the group, but by one thread
   * at a time, "looking": so no operation is used again while somebody looks at it.
   */
  private static final int FIRST_SIZE = 256;

  private final OperationOwner owner;
  private @Nullable GroupOperation[] ring = new @Nullable GroupOperation[FIRST_SIZE];
  private final ReentrantLock looking = new ReentrantLock();
  private long head;
  private long tail;

  StreamOperations(OperationOwner owner) {
    this.owner = owner;
  }

  /** Returns an operation to issue; who calls has the turn, and then calls {@link #add}. */
  public GroupOperation next() {
    if (isCrowded()) {
      reclaimHalf();
    }
    return take();
  }

  /**
   * Looks once whether the older half has ended, and if so makes it free. The thread that uses the
   * operations again does so itself: what another one wrote to would have to come from its caches.
   */
  private void reclaimHalf() {
    if (looking.tryLock()) {
      try {
        long low;
        long high;
        synchronized (this) {
          low = head;
          high = tail;
        }
        long probe = withEvent(low, (low + high) >>> 1);
        GroupOperation op = at(probe);
        if (op != null) {
          op.pollDevice();
          if (op.deviceEvent() != null && op.currentState() == WorkState.COMPLETED) {
            free(probe);
          }
        }
      } finally {
        looking.unlock();
      }
    }
  }

  /** Tells, once for many operations, whether half are in use. */
  private synchronized boolean isCrowded() {
    return tail - head >= ring.length / 2 && tail % (FIRST_SIZE / 4) == 0;
  }

  private synchronized GroupOperation take() {
    if (tail - head == ring.length) {
      grow();
    }
    int slot = slot(tail);
    GroupOperation op = ring[slot];
    if (op == null) {
      op = new GroupOperation(owner, true);
      ring[slot] = op;
    }
    return op;
  }

  private void grow() {
    @Nullable GroupOperation[] larger = new @Nullable GroupOperation[2 * ring.length];
    for (long i = head; i < head + ring.length; i++) {
      larger[(int) (i % larger.length)] = ring[slot(i)];
    }
    ring = larger;
  }

  private int slot(long place) {
    return (int) (place % ring.length);
  }

  /** Adds the operation that {@link #next} returned. */
  public synchronized void add() {
    tail++;
  }

  /** Looks which have ended, and makes them free; nothing if another thread does so now. */
  void reclaim() {
    if (looking.tryLock()) {
      try {
        free(lastReached());
      } finally {
        looking.unlock();
      }
    }
  }

  private long lastReached() {
    long low;
    long high;
    synchronized (this) {
      low = head;
      high = tail;
    }
    long reached = -1;
    long middle = high - 1;
    while (low < high) {
      long probe = withEvent(low, middle);
      GroupOperation op = at(probe);
      if (op != null) {
        op.pollDevice();
        if (!op.isEnded()) {
          high = probe;
          middle = (low + high) >>> 1;
          continue;
        }
        if (op.deviceEvent() != null && op.currentState() == WorkState.COMPLETED) {
          reached = probe;
        }
      }
      low = middle + 1;
      middle = (low + high) >>> 1;
    }
    return reached;
  }

  /** Returns the last place up to one that has an event, or the first place. */
  private synchronized long withEvent(long first, long place) {
    long probe = place;
    while (probe > Math.max(first, head)) {
      GroupOperation op = ring[slot(probe)];
      if (op != null && op.deviceEvent() != null) {
        return probe;
      }
      probe--;
    }
    return probe;
  }

  private synchronized @Nullable GroupOperation at(long place) {
    return place < head ? null : ring[slot(place)];
  }

  /** Frees what has ended, and what was issued no later than one that the device reached. */
  private synchronized void free(long reached) {
    for (; head < tail; head++) {
      GroupOperation op = ring[slot(head)];
      if (op == null) {
        return;
      }
      if (head <= reached) {
        op.complete();
      }
      if (!op.isEnded()) {
        return;
      }
      DeviceEvent event = op.deviceEvent();
      if (event != null && op.currentState() == WorkState.COMPLETED) {
        event.release();
      }
    }
  }

  /** Returns what has not ended, oldest first. */
  synchronized List<GroupOperation> pending() {
    if (head == tail) {
      return List.of();
    }
    List<GroupOperation> all = new ArrayList<>();
    for (long i = head; i < tail; i++) {
      GroupOperation op = ring[slot(i)];
      if (op != null && !op.isEnded()) {
        all.add(op);
      }
    }
    return all;
  }
}
