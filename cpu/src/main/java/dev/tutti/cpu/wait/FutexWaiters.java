package dev.tutti.cpu.wait;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** Lets threads sleep until another rank of the host changes a word that they share. */
public final class FutexWaiters {
  /*
   * The ranks count in a word of the memory who sleeps. A thread that changes a word reads the count,
   * which is in its cache and 0 nearly always, and only calls the system if it is not. A sleeper counts
   * itself before the system compares the word with what it saw. The read of the count may still
   * overtake the change of the word, as there is no fence between them; then a sleeper that came at this
   * very moment is not woken. So each sleep has a limit, which also serves ranks that have no futex.
   */
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment memory;
  private final long count;

  /**
   * Creates a rank's view.
   *
   * @param memory that ranks share
   * @param count offset of the word in which they count who sleeps, 0 at first
   */
  public FutexWaiters(MemorySegment memory, long count) {
    this.memory = memory;
    this.count = count;
  }

  /**
   * Sleeps until a word changes and its changer says so, or for a time.
   *
   * @param futex of the calling thread
   * @param offset of the word
   * @param seen what it was; returns at once if it is not that any more
   * @param nanos how long at most
   */
  public void sleep(Futex futex, long offset, long seen, long nanos) {
    if (!Futex.isReady() || Thread.currentThread().isVirtual()) {
      WaitStrategy.park(this, nanos);
      return;
    }
    WORD.getAndAdd(memory, count, 1L);
    try {
      futex.await(memory.address() + offset, seen, nanos);
    } finally {
      WORD.getAndAdd(memory, count, -1L);
    }
  }

  /** Wakes those who sleep until a word changes, which it just did. */
  public void wake(long offset) {
    if ((long) WORD.getOpaque(memory, count) != 0 && Futex.isReady()) {
      Futex.wake(memory.address() + offset);
    }
  }

  /** Returns how many sleep now. */
  public long count() {
    return (long) WORD.getOpaque(memory, count);
  }
}
