package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The rules of language, as checks of a text. */
final class Prose {
  private static final Pattern FRONT_MATTER = Pattern.compile("\\A---\n.*?\n---\n", Pattern.DOTALL);
  private static final Pattern CODE_BLOCK =
      Pattern.compile("^\\s*```.*?^\\s*```\\s*$", Pattern.DOTALL | Pattern.MULTILINE);
  private static final Pattern CODE_SPAN = Pattern.compile("`[^`]*`");
  private static final Pattern TARGET = Pattern.compile("]\\([^)]*\\)");

  /** A table, a heading, HTML or a picture. */
  private static final Pattern NO_SENTENCE = Pattern.compile("\\s*(\\||#|<|!\\[|\\[!).*");

  private static final Pattern ITEM = Pattern.compile("\\s*([*-]|\\d+\\.)\\s+(?=\\S)");
  private static final Pattern END = Pattern.compile("(?<=[.!?])[\")*_\\]]*\\s+");
  private static final Pattern WORD = Pattern.compile("[A-Za-z0-9]\\S*");

  private Prose() {}

  /**
   * Returns the sentences of a page that have more than a given number of words; a code span counts
   * as one.
   */
  static List<String> sentencesOver(int words, String page) {
    List<String> found = new ArrayList<>();
    for (String text : paragraphs(page)) {
      for (String sentence : END.splitAsStream(text).toList()) {
        if (WORD.matcher(sentence).results().count() > words) {
          found.add(sentence);
        }
      }
    }
    return found;
  }

  /** Returns the text of paragraphs and list items, each on one line. */
  private static List<String> paragraphs(String page) {
    String text = FRONT_MATTER.matcher(page).replaceFirst("");
    text = CODE_BLOCK.matcher(text).replaceAll("\n");
    List<String> found = new ArrayList<>();
    StringBuilder current = new StringBuilder();
    for (String line : (text + "\n\n").split("\n", -1)) {
      Matcher item = ITEM.matcher(line);
      boolean isItem = item.lookingAt();
      if (line.isBlank() || isItem) {
        String joined = CODE_SPAN.matcher(current).replaceAll("code");
        found.add(TARGET.matcher(joined).replaceAll("]"));
        current.setLength(0);
      }
      if (!NO_SENTENCE.matcher(line).matches()) {
        current.append(isItem ? line.substring(item.end()) : line.strip()).append(' ');
      }
    }
    return found;
  }

  /** Returns the lines of a text that have more than a given number of characters. */
  static List<String> linesOver(int characters, String text) {
    return text.lines().filter(line -> line.length() > characters).toList();
  }

  /** Returns the words and phrases that must not be used. */
  static List<String> unwanted() throws IOException {
    try (InputStream in = Prose.class.getResourceAsStream("unwanted-words.txt")) {
      return new String(Objects.requireNonNull(in).readAllBytes(), UTF_8)
          .lines()
          .filter(line -> !line.isEmpty() && !line.startsWith("#"))
          .toList();
    }
  }

  /**
   * Matches any of the given words or phrases, even if a line breaks between two words. Those with
   * the same first letter form one alternative, since most words of a text begin with another
   * letter.
   */
  static Pattern anyOf(List<String> phrases) {
    return phrases.stream()
        .map(phrase -> phrase.replace(" ", "\\s+(?:\\*\\s+|//\\s+)?"))
        .collect(
            Collectors.groupingBy(
                phrase -> phrase.substring(0, 1),
                Collectors.mapping(phrase -> phrase.substring(1), Collectors.joining("|"))))
        .entrySet()
        .stream()
        .map(letter -> letter.getKey() + "(?:" + letter.getValue() + ")")
        .collect(
            Collectors.collectingAndThen(
                Collectors.joining("|", "\\b(?:", ")\\b"),
                words -> Pattern.compile(words, Pattern.CASE_INSENSITIVE)));
  }
}
