package dev.tutti.cpu.wait;

/** The clock against which deadlines are checked; tests pass one that they control. */
@FunctionalInterface
public interface NanoClock {
  /** The clock of this machine, {@link System#nanoTime()}. */
  NanoClock SYSTEM = System::nanoTime;

  /** Returns the time in nanoseconds; only differences between times are meaningful. */
  long nanoTime();
}
