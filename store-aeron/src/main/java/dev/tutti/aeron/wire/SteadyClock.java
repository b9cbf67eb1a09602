package dev.tutti.aeron.wire;

import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.EpochClock;

/** Clocks for Aeron that a step of the wall clock does not move. */
public final class SteadyClock {
  /*
   * Aeron takes the wall clock where none is given. After a step forward, as the first answer of a
   * time server makes it, every driver, client and session looks as if it had been silent for as
   * long.
   *
   * A driver and its clients compare times that they write into shared memory, so they need a clock
   * that all processes of a host share. The parts of a member, and the members, compare nothing but
   * their own times; theirs begins at the wall clock, so that times in the log can be read.
   */

  /** The milliseconds since the host started, the same in all its processes. */
  public static final EpochClock HOST = () -> TimeUnit.NANOSECONDS.toMillis(System.nanoTime());

  private static final long BEGINNING_MILLIS = System.currentTimeMillis() - HOST.time();

  /** The milliseconds since the epoch, as the wall clock had them when this process began. */
  public static final EpochClock PROCESS = () -> BEGINNING_MILLIS + HOST.time();

  private SteadyClock() {}
}
