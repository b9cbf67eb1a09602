package dev.tutti.cpu.wait;

import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** Lets threads sleep until another rank on the host changes a word that they share. */
public final class FutexWaiters {
  /*
   * The ranks keep a count of sleepers in a word of the memory. A thread that changes a word reads
   * the count, which is in its cache and almost always 0, and makes the system call only if it is
   * not 0. A sleeper increments the count before the system compares the word with the value that
   * the sleeper saw. The read of the count may still overtake the change of the word, as there is
   * no fence between them; a sleeper that comes at this very moment is then not woken. Each sleep
   * therefore has a limit, which also serves ranks that have no futex.
   */
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment memory;
  private final long count;
  private final Time time;

  /**
   * Creates a rank's view.
   *
   * @param memory the memory that the ranks share
   * @param count the offset of the word that counts the sleepers, initially 0
   * @param time by which a thread sleeps where there is no futex
   */
  public FutexWaiters(MemorySegment memory, long count, Time time) {
    this.memory = memory;
    this.count = count;
    this.time = time;
  }

  /**
   * Sleeps until a word changes and the rank that changed it says so, or for a maximum time.
   *
   * @param futex the futex of the calling thread
   * @param offset the offset of the word
   * @param seen the value that the word had; returns at once if it has changed
   * @param nanos the maximum time to sleep
   */
  public void sleep(Futex futex, long offset, long seen, long nanos) {
    if (!Futex.isReady() || Thread.currentThread().isVirtual()) {
      Uninterrupted.park(time, this, nanos);
      return;
    }
    WORD.getAndAdd(memory, count, 1L);
    try {
      futex.await(memory.address() + offset, seen, nanos);
    } finally {
      WORD.getAndAdd(memory, count, -1L);
    }
  }

  /** Wakes the threads that sleep until a word changes, after the word has changed. */
  public void wake(long offset) {
    if ((long) WORD.getOpaque(memory, count) != 0 && Futex.isReady()) {
      Futex.wake(memory.address() + offset);
    }
  }

  /** Returns the current number of sleepers. */
  public long count() {
    return (long) WORD.getOpaque(memory, count);
  }
}
