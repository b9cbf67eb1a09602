package dev.tutti.cpu.wait;

import dev.tutti.Setting;
import dev.tutti.Settings;

/** The cores that the ranks of a host have together. */
public final class HostCores {
  /** How many they are, where each rank may use only some of them. */
  public static final Setting<Integer> SETTING =
      Setting.integer(
          "TUTTI_HOST_CORES",
          0,
          "how many cores the ranks of this host have together, if each is bound to some of them;"
              + " tutti run --bind sets it; 0 for those that a rank may use");

  private HostCores() {}

  /** Returns their number: that of the setting, or of the cores of this process if it has more. */
  public static int count(Settings settings) {
    return Math.max(Runtime.getRuntime().availableProcessors(), settings.get(SETTING));
  }
}
