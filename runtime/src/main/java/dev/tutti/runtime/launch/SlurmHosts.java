package dev.tutti.runtime.launch;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads Slurm's host lists, such as {@code rack[0-1]node[08-12,20],login}: names separated by
 * commas, in which brackets stand for each of their numbers, including leading zeros.
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
   * @param list a list of at least one host
   * @throws IllegalArgumentException if the list does not begin with a host
   */
  static String first(String list) {
    Matcher hosts = FIRST.matcher(list);
    if (!hosts.matches()) {
      throw new IllegalArgumentException("'" + list + "' is not a list of hosts");
    }
    return BRACKETS.matcher(hosts.group(1)).replaceAll("$1");
  }
}
