package dev.tutti.cpu.wait;

/** Clock against which deadlines are checked; tests hand in one that they move. */
@FunctionalInterface
public interface NanoClock {
  /** The clock of this machine, {@link System#nanoTime()}. */
  NanoClock SYSTEM = System::nanoTime;

  /** Returns the time in nanoseconds, which only differences give a meaning. */
  long nanoTime();
}
