package dev.tutti.testing.fuzz;

import java.time.Duration;

/** Runs programs, each on new groups. */
interface ProgramHost {
  /**
   * Runs a program once.
   *
   * @param patience after how long without any progress it counts as hanging
   */
  Outcome run(Program program, Duration patience) throws Exception;
}
