package dev.tutti.cuda.driver;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A finder of races: of two accesses to the same device memory, one of which writes, that streams
 * and events do not order. It finds them whichever comes first in time. A thread of the host that
 * sees work done orders what it issues later after that work.
 */
@SuppressWarnings("ThreadLocalUsage") // one for each machine
public final class Races {
  private final FakeMemory memory;
  private final ThreadLocal<Clock> host = ThreadLocal.withInitial(() -> Clock.START);
  private final ThreadLocal<@Nullable Stamp> running = new ThreadLocal<>();
  private final List<Access> accesses = new ArrayList<>();
  private final List<String> found = new ArrayList<>();
  private final Map<Long, Clock> released = new ConcurrentHashMap<>();
  private final AtomicReference<@Nullable Clock> seen = new AtomicReference<>();
  private volatile boolean enabled;

  /** The place of a piece of work in its stream, and what comes before it. */
  record Stamp(FakeStream stream, Clock clock) {
    boolean isAfter(Stamp other) {
      int number = other.stream.number;
      return clock.at(number) >= other.clock.at(number);
    }
  }

  /**
   * An access to memory.
   *
   * @param begin the number of the first byte, whatever its address
   * @param address the address of the first byte
   */
  private record Access(
      Stamp stamp, String what, boolean writes, long begin, long end, long address) {
    boolean isThrough(long from, long bytes) {
      return from < address + (end - begin) && address < from + bytes;
    }

    boolean overlaps(Access other) {
      return begin < other.end && other.begin < end;
    }

    boolean contains(Access other) {
      return begin <= other.begin && other.end <= end;
    }

    @Override
    public String toString() {
      return "%s %s 0x%x to 0x%x in stream %d of device %d"
          .formatted(
              what,
              writes ? "writes" : "reads",
              begin,
              end,
              stamp.stream.number,
              stamp.stream.device);
    }
  }

  Races(FakeMemory memory) {
    this.memory = memory;
  }

  /**
   * Begins to check accesses. Other orders between threads of the host than streams and events are
   * unknown, so one thread should issue the work of a device, and see it done.
   */
  public void find() {
    enabled = true;
  }

  /**
   * Begins to check accesses, and takes what any thread has seen done as known to all of them,
   * which hides races.
   */
  public void findAcrossThreads() {
    seen.set(Clock.START);
    enabled = true;
  }

  boolean isEnabled() {
    return enabled;
  }

  /** Returns the races so far, as text. */
  public List<String> found() {
    synchronized (accesses) {
      return List.copyOf(found);
    }
  }

  /** Returns what comes before work that the calling thread issues now. */
  Clock host() {
    Clock byAny = seen.get();
    return byAny == null ? host.get() : byAny;
  }

  /** Records that the calling thread saw work done. */
  void saw(Clock clock) {
    if (enabled && seen.updateAndGet(old -> old == null ? null : old.join(clock)) == null) {
      host.set(host.get().join(clock));
    }
  }

  /** Runs a piece of work. */
  void run(Stamp stamp, FakeStream.Task task) throws InterruptedException {
    running.set(stamp);
    try {
      task.run();
    } finally {
      running.remove();
    }
  }

  /** Records that the work that the calling thread runs is about to write a word, as a flag. */
  void release(long word) {
    Stamp stamp = running.get();
    if (stamp != null) {
      released.put(memory.home(word), stamp.clock);
    }
  }

  /** Records that the work that the calling thread runs has seen a word as it was last written. */
  void acquire(long word) {
    Stamp stamp = running.get();
    if (stamp != null) {
      stamp.stream.learn(released.getOrDefault(memory.home(word), Clock.START));
    }
  }

  /** Records that the work that the calling thread runs reads memory. */
  public void read(String what, long address, long bytes) {
    access(what, address, bytes, false);
  }

  /** Records that the work that the calling thread runs writes memory. */
  public void write(String what, long address, long bytes) {
    access(what, address, bytes, true);
  }

  private void access(String what, long address, long bytes, boolean writes) {
    Stamp stamp = running.get();
    if (stamp == null || bytes == 0 || !memory.isOnDevice(address)) {
      return;
    }
    long home = memory.home(address);
    Access now = new Access(stamp, what, writes, home, home + bytes, address);
    synchronized (accesses) {
      for (Iterator<Access> all = accesses.iterator(); all.hasNext(); ) {
        Access before = all.next();
        if (!now.overlaps(before)) {
          continue;
        }
        boolean ordered = stamp.isAfter(before.stamp);
        if (!ordered && (writes || before.writes) && !before.stamp.isAfter(stamp)) {
          found.add(before + ", and nothing orders it and that " + now);
        }
        // Whatever comes after this access also comes after that one.
        if (ordered && now.contains(before) && (writes || !before.writes)) {
          all.remove();
        }
      }
      accesses.add(now);
    }
  }

  /**
   * Records that the calling thread unmaps addresses, through which nothing may access memory then.
   */
  void unmapped(long address, long bytes) {
    if (!enabled) {
      return;
    }
    Clock known = host();
    synchronized (accesses) {
      for (Access each : accesses) {
        int number = each.stamp.stream.number;
        if (each.isThrough(address, bytes) && known.at(number) < each.stamp.clock.at(number)) {
          found.add(each + ", and nothing orders that and the end of its mapping");
        }
      }
    }
  }

  /** Forgets all accesses. */
  public void forget() {
    forget(0, Long.MAX_VALUE);
  }

  /** Forgets accesses to memory that was freed. */
  void forget(long address, long bytes) {
    synchronized (accesses) {
      accesses.removeIf(each -> each.begin < address + bytes && address < each.end);
    }
  }
}
