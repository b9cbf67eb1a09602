package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** The word in which a rank says that it is asleep; {@link RingChannel} describes the protocol. */
public final class Sleep {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment line;
  private long number;

  /**
   * Provides access to the word of a rank.
   *
   * @param line a line as from {@link RingMemory#sleep}
   */
  public Sleep(MemorySegment line) {
    this.line = line;
  }

  /** Announces that this rank is about to sleep; it must check its rings afterwards. */
  public void begin() {
    WORD.setVolatile(line, 0L, ++number);
  }

  /** Announces that this rank is awake. */
  public void end() {
    WORD.setRelease(line, 0L, 0L);
  }

  /**
   * Notifies a peer whether the rank is asleep and still has to be woken by it; returns true once
   * for each sleep. Must be called after doing something for which the rank waits.
   */
  boolean isToBeEnded() {
    long now = (long) WORD.getVolatile(line, 0L);
    if (now == 0 || now == number) {
      return false;
    }
    number = now;
    return true;
  }
}
