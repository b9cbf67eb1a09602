package dev.tutti.runtime.launch;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads Slurm's lists of hosts, as in {@code rack[0-1]node[08-12,20],login}: names with a comma
 * between them, in which brackets stand for each of their numbers, which keep their leading zeros.
 */
final class SlurmHosts {
  private static final String NUMBERS = "\\[(\\d+)(?:-\\d+)?(?:,\\d+(?:-\\d+)?)*]";
  private static final Pattern FIRST =
      Pattern.compile("((?:[\\p{L}\\p{N}._-]|" + NUMBERS + ")+)(?:,.+)?");
  private static final Pattern BRACKETS = Pattern.compile(NUMBERS);

  private SlurmHosts() {}

  /**
   * Returns the first host of a list.
   *
   * @param list at least one host
   * @throws IllegalArgumentException if its begin is no host
   */
  static String first(String list) {
    Matcher hosts = FIRST.matcher(list);
    if (!hosts.matches()) {
      throw new IllegalArgumentException("'" + list + "' is no list of hosts");
    }
    return BRACKETS.matcher(hosts.group(1)).replaceAll("$1");
  }
}
