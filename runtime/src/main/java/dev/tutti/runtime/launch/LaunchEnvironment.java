package dev.tutti.runtime.launch;

import java.util.Optional;

/** Reads the variables that one kind of launcher sets. */
interface LaunchEnvironment {
  /** Returns the launcher's name in messages. */
  String launcher();

  /**
   * Reads what the launcher says.
   *
   * @param variables where it is looked up, and which remember what was read
   * @return empty if this launcher did not start the process
   * @throws dev.tutti.RendezvousException if it says a part alone, or what cannot be read
   */
  Optional<Launch> read(Variables variables);
}
