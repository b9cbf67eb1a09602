package dev.tutti.cli.doctor;

/**
 * A wrapper that breaks text at spaces, so that it fits a terminal.
 *
 * @param columns the width of the terminal
 */
record Wrapper(int columns) {
  /**
   * The narrowest column of text; if there is less room, lines are longer than the terminal is
   * wide.
   */
  private static final int NARROWEST = 30;

  /**
   * Breaks a text.
   *
   * @param text the text to break
   * @param indent the number of columns that are occupied in the first line, and blank in the
   *     following ones
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
