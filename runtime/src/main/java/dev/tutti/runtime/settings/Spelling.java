package dev.tutti.runtime.settings;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/** Finds what a user who misspelled a name may have meant. */
public final class Spelling {
  /**
   * The maximum number of letters that may be wrong, missing or superfluous; for short names, at
   * most half of all letters.
   */
  private static final int MAX_DISTANCE = 3;

  private Spelling() {}

  /**
   * Returns the name that differs least, if one is close enough. Of these, names that begin with
   * what the user wrote come first.
   *
   * @param written the name that the user wrote
   * @param names the names that exist
   */
  public static Optional<String> nearest(String written, Collection<String> names) {
    return names.stream()
        .filter(name -> distance(written, name) <= Math.min(MAX_DISTANCE, (name.length() + 1) / 2))
        .min(
            Comparator.comparingInt(
                    (String name) -> name.startsWith(written) ? 0 : distance(written, name))
                .thenComparing(Comparator.naturalOrder()));
  }

  /** Counts the letters to insert, delete or change (the Levenshtein distance). */
  static int distance(String from, String to) {
    int[] row = new int[to.length() + 1];
    for (int k = 0; k < row.length; k++) {
      row[k] = k;
    }
    for (int i = 1; i <= from.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int k = 1; k < row.length; k++) {
        int change = diagonal + (from.charAt(i - 1) == to.charAt(k - 1) ? 0 : 1);
        diagonal = row[k];
        row[k] = Math.min(change, 1 + Math.min(row[k], row[k - 1]));
      }
    }
    return row[to.length()];
  }
}
