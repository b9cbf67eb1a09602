package dev.tutti.contracts.fuzz;

import java.time.Duration;

/** A host that runs programs, each on new groups. */
interface ProgramHost {
  /**
   * Runs a program once.
   *
   * @param patience the time without any progress after which the program counts as hanging
   */
  Outcome run(Program program, Duration patience) throws Exception;
}
