package dev.tutti.cli.status;

import java.util.ArrayList;
import java.util.List;

/** A format for rows of texts as aligned columns. */
final class Columns {
  private static final int GAP = 2;

  private Columns() {}

  /** Returns a line for each row; all rows have the same number of texts. */
  static List<String> aligned(List<List<String>> rows) {
    int[] widths = new int[rows.getFirst().size()];
    for (List<String> row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    List<String> lines = new ArrayList<>();
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < widths.length; i++) {
        line.append(row.get(i)).repeat(' ', widths[i] - row.get(i).length() + GAP);
      }
      lines.add(line.toString().stripTrailing());
    }
    return lines;
  }
}
