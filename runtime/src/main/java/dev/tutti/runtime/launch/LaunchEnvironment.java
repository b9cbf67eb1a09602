package dev.tutti.runtime.launch;

import java.util.Optional;

/** Reads the variables that one kind of launcher sets. */
interface LaunchEnvironment {
  /** Returns the launcher's name in messages. */
  String launcher();

  /**
   * Reads what the launcher provides.
   *
   * @param variables the variables to look up; they record which were read
   * @return empty if this launcher did not start the process
   * @throws dev.tutti.RendezvousException if the launcher provides only a part, or something that
   *     cannot be parsed
   */
  Optional<Launch> read(Variables variables);
}
