package dev.tutti.cuda.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The room for blocks of kernels on fake devices, without bounds until a test sets one. Fakes of
 * reductions and barriers keep to it: a block stays until the blocks of all ranks have begun.
 */
public final class FakeBlocks {
  private final Map<Integer, Room> rooms = new ConcurrentHashMap<>();
  private volatile int most;

  private static final class Room {
    final Semaphore free;
    final AtomicInteger begun = new AtomicInteger();

    Room(int most) {
      free = new Semaphore(most);
    }
  }

  /** Sets how many blocks can be on a device at once, before any has begun. */
  public void limit(int blocks) {
    most = blocks;
  }

  /** Returns whether there is a bound. */
  public boolean isLimited() {
    return most > 0;
  }

  private Room room(int device) {
    return rooms.computeIfAbsent(device, _ -> new Room(most));
  }

  /** Begins a block, if there is room for it. */
  public boolean begin(int device) {
    Room room = room(device);
    if (!room.free.tryAcquire()) {
      return false;
    }
    room.begun.incrementAndGet();
    return true;
  }

  /** Ends blocks. */
  public void end(int device, int count) {
    room(device).free.release(count);
  }

  /** Returns how many blocks have begun on a device so far. */
  public int begun(int device) {
    return room(device).begun.get();
  }

  /** Returns how many more blocks can begin on a device. */
  public int free(int device) {
    return room(device).free.availablePermits();
  }
}
