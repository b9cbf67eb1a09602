package dev.tutti.cli.doctor;

/**
 * Breaks text at blanks, so that it fits a terminal.
 *
 * @param columns of the terminal
 */
record Wrapper(int columns) {
  /** Narrowest column of text: where there is less room, lines are longer than the terminal. */
  private static final int NARROWEST = 30;

  /**
   * Breaks a text.
   *
   * @param text what to break
   * @param indent columns that are taken in the first line, and blank in those that follow
   */
  String wrap(String text, int indent) {
    int room = Math.max(NARROWEST, columns - indent);
    StringBuilder wrapped = new StringBuilder();
    int left = room;
    for (String word : text.split(" ")) {
      boolean first = wrapped.isEmpty();
      if (!first && word.length() + 1 > left) {
        wrapped.append('\n').append(" ".repeat(indent)).append(word);
        left = room - word.length();
      } else {
        wrapped.append(first ? "" : " ").append(word);
        left -= word.length() + (first ? 0 : 1);
      }
    }
    return wrapped.toString();
  }
}
