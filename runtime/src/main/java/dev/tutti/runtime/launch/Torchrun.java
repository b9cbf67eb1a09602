package dev.tutti.runtime.launch;

import dev.tutti.runtime.settings.RuntimeSettings;
import java.util.Optional;

/**
 * {@code tutti run}, {@code torchrun} or a person: {@code RANK}, {@code WORLD_SIZE}, {@code
 * MASTER_ADDR}, {@code MASTER_PORT}. These are settings, so missing or invalid values are reported
 * where they are used.
 */
final class Torchrun {
  private Torchrun() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
    Optional<String> rank = variables.text(RuntimeSettings.RANK.name());
    String size = variables.text(RuntimeSettings.WORLD_SIZE.name()).orElse("");
    String host = variables.text(RuntimeSettings.MASTER_ADDR.name()).orElse("");
    String port = variables.text(RuntimeSettings.MASTER_PORT.name()).orElse("");
    return rank.map(
        number -> new Launch(variables.launcher(), number, size, host, port, variables.seen()));
  }
}
