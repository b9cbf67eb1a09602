package dev.tutti.gloo.transport.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** The word in which a rank says that it sleeps; {@link RingChannel} has the protocol. */
public final class Sleep {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment line;
  private long number;

  /**
   * Gives access to the word of a rank.
   *
   * @param line as {@link RingMemory#sleep}
   */
  public Sleep(MemorySegment line) {
    this.line = line;
  }

  /** Says that this rank is about to sleep; it must look at its rings after this. */
  public void begin() {
    WORD.setVolatile(line, 0L, ++number);
  }

  /** Says that this rank is awake. */
  public void end() {
    WORD.setRelease(line, 0L, 0L);
  }

  /**
   * Tells a peer whether the rank sleeps and is still to be woken by it; true once for each sleep.
   * To be asked after something was done for which the rank waits.
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
