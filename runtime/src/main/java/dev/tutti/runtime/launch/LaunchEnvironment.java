package dev.tutti.runtime.launch;

import dev.tutti.Settings;
import java.util.Optional;
import java.util.function.Function;

/**
 * The variables that one kind of launcher sets.
 *
 * @param launcher the launcher's name in messages
 * @param reader reads the variables, which record what was read; empty if this launcher did not
 *     start the process
 */
record LaunchEnvironment(String launcher, Function<Variables, Optional<Launch>> reader) {
  /**
   * Reads what the launcher provides.
   *
   * @throws dev.tutti.RendezvousException if the launcher provides only a part, or something that
   *     cannot be parsed
   */
  Optional<Launch> read(Settings settings) {
    return reader.apply(variables(settings));
  }

  Variables variables(Settings settings) {
    return new Variables(settings, launcher);
  }
}
