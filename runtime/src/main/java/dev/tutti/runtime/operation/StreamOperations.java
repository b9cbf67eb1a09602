package dev.tutti.runtime.operation;

import dev.tutti.WorkState;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Holds the stream-ordered collectives whose callers got no work, in the order of their issue, and
 * reuses those that have ended: issuing a collective allocates nothing once there are as many as
 * the device ever falls behind.
 */
public final class StreamOperations {
  /*
   * A ring: the operations from "head" up to but excluding "tail" are in use, and the one at "tail"
   * is next. The thread that has the turn of the queue issues it and then advances the tail. A
   * device reaches a group's collectives in the order of their issue, so if one is done, so are all
   * earlier ones that have an event; those that were recorded into a graph or refused have none.
   * The last one that is done is found by binary search, since each look is a driver call. Looks
   * are made without the monitor, because they can fail the group, but by one thread at a time,
   * under "looking". So no operation is reused while a thread looks at it.
   */
  private static final int FIRST_SIZE = 256;

  private final OperationOwner owner;
  private final Time time;
  private @Nullable GroupOperation[] ring = new @Nullable GroupOperation[FIRST_SIZE];
  private final ReentrantLock looking = new ReentrantLock();
  private long head;
  private long tail;

  StreamOperations(OperationOwner owner) {
    this.owner = owner;
    this.time = owner.identity().time();
  }

  /** Returns an operation to issue; the caller has the turn, and must then call {@link #add}. */
  public GroupOperation next() {
    if (isCrowded()) {
      reclaimHalf();
    }
    return take();
  }

  /**
   * Looks once whether the older half has ended, and frees it if so. The thread that reuses the
   * operations does this itself: if another thread had written to them, they would have to be
   * fetched from that thread's caches.
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

  /** Returns, once for many operations, whether half of the ring is in use. */
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

  /**
   * Looks for operations that have ended, and frees them; does nothing if another thread keeps
   * doing so.
   *
   * @param waitNanos how long to wait for that thread
   */
  void reclaim(long waitNanos) {
    try {
      if (waitNanos == 0 ? looking.tryLock() : time.tryLock(looking, waitNanos)) {
        try {
          free(lastReached());
        } finally {
          looking.unlock();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
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

  /** Returns the last place up to the given one that has an event, or else the first place. */
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

  /**
   * Frees the operations that have ended, and those issued no later than one that the device has
   * reached.
   */
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

  /** Returns the operations that have not ended, oldest first. */
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
