package dev.tutti.cli.doctor;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.runtime.launch.Launch;
import dev.tutti.runtime.launch.LaunchEnvironments;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.util.List;
import java.util.Optional;

/**
 * The check that says which launcher started this process, and the rank and store that it has set.
 */
final class LaunchCheck {
  private static final String SECTION = "launch";
  private static final String NAME = "launcher";

  private LaunchCheck() {}

  /**
   * Returns the findings.
   *
   * @param settings all settings
   */
  static List<CheckResult> run(Settings settings) {
    String place = settings.get(RuntimeSettings.INIT_METHOD);
    if (!place.startsWith("env://")) {
      return List.of(CheckResult.ok(SECTION, NAME, "not used", "ranks meet at " + place));
    }
    try {
      Optional<Launch> found = LaunchEnvironments.find(settings);
      return List.of(found.map(LaunchCheck::describe).orElseGet(LaunchCheck::none));
    } catch (RendezvousException e) {
      return List.of(
          CheckResult.broken(SECTION, NAME, "ambiguous", String.valueOf(e.getMessage())));
    }
  }

  private static CheckResult none() {
    return CheckResult.ok(
        SECTION,
        NAME,
        "none",
        "looked for the variables of " + String.join(", ", LaunchEnvironments.launchers()));
  }

  private static CheckResult describe(Launch launch) {
    String value = "%s, rank %s of %s".formatted(launch.launcher(), launch.rank(), launch.size());
    String place =
        launch.host().isEmpty() ? "" : "store at %s:%s; ".formatted(launch.host(), launch.port());
    return CheckResult.ok(SECTION, NAME, value, place + "from " + launch.seenText());
  }
}
