package dev.tutti.cli.doctor;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.settings.Spelling;
import dev.tutti.spi.HostPort;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.SortedSet;

/** A check for errors in the settings that say which rank this is and where the ranks meet. */
final class MeetingCheck {
  private static final int MAX_PORT = 65535;

  private final Settings settings;
  private final SortedSet<String> schemes;
  private final Map<String, String> wrong = new HashMap<>();

  private MeetingCheck(Settings settings, SortedSet<String> schemes) {
    this.settings = settings;
    this.schemes = schemes;
  }

  /**
   * Returns what is wrong and what to do about it, by the name of the setting.
   *
   * @param settings all settings
   * @param schemes the schemes of the stores on the class path
   */
  static Map<String, String> run(Settings settings, SortedSet<String> schemes) {
    MeetingCheck check = new MeetingCheck(settings, schemes);
    check.checkScheme(RuntimeSettings.STORE, settings.get(RuntimeSettings.STORE));
    String place = settings.get(RuntimeSettings.INIT_METHOD);
    int colon = place.indexOf("://");
    if (colon < 0) {
      check.add(RuntimeSettings.INIT_METHOD, "is not a URL; unset it for env://");
    } else if (!place.startsWith("env://")) {
      check.checkScheme(RuntimeSettings.INIT_METHOD, place.substring(0, colon));
    }
    check.checkAddress();
    check.checkPort();
    check.checkRank();
    return Map.copyOf(check.wrong);
  }

  private void add(Setting<?> setting, String complaint) {
    wrong.put(setting.name(), complaint);
  }

  private void checkScheme(Setting<?> setting, String scheme) {
    if (!schemes.contains(scheme)) {
      String meant =
          Spelling.nearest(scheme, schemes)
              .map(name -> "; did you mean " + name + "?")
              .orElse("; unset it for " + setting.defaultText());
      add(
          setting,
          "no store on the class path has the scheme '%s'; the available schemes are %s%s"
              .formatted(scheme, String.join(", ", schemes), meant));
    }
  }

  private void checkAddress() {
    String host = settings.get(RuntimeSettings.MASTER_ADDR).strip();
    if (host.isEmpty()) {
      return;
    }
    try {
      if (HostPort.parse(host).port() >= 0) {
        add(
            RuntimeSettings.MASTER_ADDR,
            "must be a host without a port; the port is set in MASTER_PORT");
      }
    } catch (IllegalArgumentException e) {
      add(RuntimeSettings.MASTER_ADDR, "must be a host name or an IP address: " + e.getMessage());
    }
  }

  private void checkPort() {
    String text = settings.get(RuntimeSettings.MASTER_PORT);
    int port = number(text).orElse(-1);
    if (!text.isEmpty() && (port < 0 || port > MAX_PORT)) {
      add(
          RuntimeSettings.MASTER_PORT,
          "must be a number from 1 to " + MAX_PORT + ", the same for all ranks");
    } else if (port == 0 && number(settings.get(RuntimeSettings.WORLD_SIZE)).orElse(1) > 1) {
      add(
          RuntimeSettings.MASTER_PORT,
          "must not be 0: the other ranks cannot know which port is chosen");
    }
  }

  private void checkRank() {
    String sizeText = settings.get(RuntimeSettings.WORLD_SIZE);
    String rankText = settings.get(RuntimeSettings.RANK);
    int size = sizeText.isEmpty() ? Integer.MAX_VALUE : number(sizeText).orElse(0);
    int rank = rankText.isEmpty() ? 0 : number(rankText).orElse(-1);
    if (size < 1) {
      add(RuntimeSettings.WORLD_SIZE, "must be the number of ranks, at least 1");
    }
    if (rank < 0) {
      add(RuntimeSettings.RANK, "must be a number from 0 to WORLD_SIZE - 1");
    } else if (size >= 1 && rank >= size) {
      add(
          RuntimeSettings.RANK,
          "must be from 0 to %d, because WORLD_SIZE is %d".formatted(size - 1, size));
    }
  }

  private static OptionalInt number(String text) {
    try {
      return OptionalInt.of(Integer.parseInt(text.strip()));
    } catch (NumberFormatException e) {
      return OptionalInt.empty();
    }
  }
}
