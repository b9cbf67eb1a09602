package dev.tutti.runtime.launch;

import dev.tutti.Settings;
import java.util.HashMap;
import java.util.Map;

/** Environments of ranks, as set by launchers. */
final class Recorded {
  private Recorded() {}

  /** Returns the settings of a process with the given variables, each as {@code NAME=value}. */
  static Settings environment(String... variables) {
    Map<String, String> environment = new HashMap<>();
    for (String variable : variables) {
      String[] parts = variable.split("=", 2);
      environment.put(parts[0], parts[1]);
    }
    return Settings.ofEnvironment(environment);
  }

  /**
   * Returns how the launcher's variables are interpreted: rank/size at host:port, and the launcher.
   */
  static String found(Settings settings) {
    return LaunchEnvironments.find(settings)
        .map(
            launch ->
                "%s/%s at %s:%s by %s"
                    .formatted(
                        launch.rank(),
                        launch.size(),
                        launch.host(),
                        launch.port(),
                        launch.launcher()))
        .orElse("none");
  }

  /** Returns how the launcher's variables are interpreted. */
  static String found(String... variables) {
    return found(environment(variables));
  }
}
