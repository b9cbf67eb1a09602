package dev.tutti.runtime.view;

import java.util.ArrayList;
import java.util.List;

/** A format for rows of texts as aligned columns. */
final class Columns {
  private static final int GAP = 2;
  private static final String NOTHING = "-";

  private Columns() {}

  /**
   * Returns a line for each row, without the columns that are empty in all rows but the first.
   *
   * @param rows rows that all have the same number of texts; the first is the header
   */
  static List<String> aligned(List<List<String>> rows) {
    int[] widths = new int[rows.getFirst().size()];
    boolean[] isShown = new boolean[widths.length];
    for (int r = 0; r < rows.size(); r++) {
      for (int i = 0; i < widths.length; i++) {
        String text = rows.get(r).get(i);
        widths[i] = Math.max(widths[i], text.length());
        isShown[i] |= r > 0 && !text.isEmpty();
      }
    }
    List<String> lines = new ArrayList<>();
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < widths.length; i++) {
        if (isShown[i]) {
          String text = row.get(i).isEmpty() ? NOTHING : row.get(i);
          line.append(text).repeat(' ', widths[i] - text.length() + GAP);
        }
      }
      lines.add(line.toString().stripTrailing());
    }
    return lines;
  }
}
