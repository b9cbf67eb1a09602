package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests that comments and pages follow the project's rules of language. */
@Tag("full")
class ProseTest {
  /** A Javadoc comment that says "Is the…" where a noun phrase or a verb belongs. */
  private static final Pattern OPENS_WITH_IS = Pattern.compile("/\\*\\*\\s+(\\*\\s+)?(Is|Are) ");

  /** A statement, not a question, whose subject is a clause with "who". */
  private static final Pattern OPENS_WITH_WHO =
      Pattern.compile("(?:^|[.:|] |\\* |// |<p>)Who (?![^.?]*\\?)", Pattern.MULTILINE);

  private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/|//[^\n]*", Pattern.DOTALL);

  private static final Pattern CODE_SPAN = Pattern.compile("`[^`]*`");
  private static final int MAX_LINE = 120;
  private static final int MAX_SENTENCE = 40;

  private static final List<Path> SOURCES = new ArrayList<>();
  private static final List<Path> PAGES = new ArrayList<>();
  private static Path root;

  @BeforeAll
  static void findFiles() throws IOException {
    root = SourceTree.root();
    Files.walkFileTree(
        root,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
            String name = folder.getFileName().toString();
            boolean isOurs =
                folder.equals(root)
                    || (!name.startsWith(".")
                        && !name.equals("target")
                        && !name.equals("node_modules"));
            return isOurs ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            String name = file.getFileName().toString();
            if (name.endsWith(".java")) {
              SOURCES.add(file);
            } else if (name.endsWith(".md")) {
              PAGES.add(file);
            }
            return FileVisitResult.CONTINUE;
          }
        });
    assertThat(SOURCES).hasSizeGreaterThan(900);
    assertThat(PAGES).hasSizeGreaterThan(15);
  }

  @Test
  void commentsOpenWithWhatAThingIs() throws IOException {
    List<String> wrong = new ArrayList<>();
    for (Path file : SOURCES) {
      find(OPENS_WITH_IS, Files.readString(file), file, wrong);
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void noSentenceHasWhoForItsSubject() throws IOException {
    List<String> wrong = new ArrayList<>();
    for (Path file : SOURCES) {
      String text = Files.readString(file);
      StringBuilder comments = new StringBuilder();
      Matcher comment = COMMENT.matcher(text);
      while (comment.find()) {
        comments.append(comment.group()).append('\n');
      }
      find(OPENS_WITH_WHO, comments, file, wrong);
    }
    for (Path file : PAGES) {
      find(OPENS_WITH_WHO, Files.readString(file), file, wrong);
    }
    assertThat(wrong).isEmpty();
  }

  /** Tables, code and text that cannot be broken, such as a long link, may be longer. */
  @Test
  void linesOfPagesHaveAtMost120Characters() throws IOException {
    List<String> wrong = new ArrayList<>();
    for (Path file : PAGES) {
      boolean isCode = false;
      for (String line : Files.readAllLines(file)) {
        isCode ^= line.strip().startsWith("```");
        boolean isTable = line.strip().startsWith("|");
        String text =
            CODE_SPAN
                .matcher(line.strip())
                .replaceAll(span -> "x".repeat(span.end() - span.start()));
        boolean canBreak = text.lastIndexOf(' ', MAX_LINE) > text.indexOf(' ');
        if (line.length() > MAX_LINE && !isCode && !isTable && canBreak) {
          wrong.add(root.relativize(file) + ": " + line);
        }
      }
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void linesOfJavaHaveAtMost120Characters() throws IOException {
    List<String> wrong = new ArrayList<>();
    for (Path file : SOURCES) {
      for (String line : Prose.linesOver(MAX_LINE, Files.readString(file))) {
        wrong.add(root.relativize(file) + ": " + line);
      }
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void sentencesOfPagesHaveAtMost40Words() throws IOException {
    List<String> wrong = new ArrayList<>();
    for (Path file : PAGES) {
      for (String sentence : Prose.sentencesOver(MAX_SENTENCE, Files.readString(file))) {
        wrong.add(root.relativize(file) + ": " + sentence);
      }
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void nobodyWritesUnwantedWords() throws IOException {
    Pattern unwanted = Prose.anyOf(Prose.unwanted());
    List<String> wrong = new ArrayList<>();
    for (Path file : SOURCES) {
      find(unwanted, Files.readString(file), file, wrong);
    }
    for (Path file : PAGES) {
      find(unwanted, Files.readString(file), file, wrong);
    }
    assertThat(wrong).isEmpty();
  }

  private static void find(Pattern pattern, CharSequence text, Path file, List<String> wrong) {
    Matcher matcher = pattern.matcher(text);
    while (matcher.find()) {
      int end = Math.min(text.length(), matcher.end() + 40);
      wrong.add(root.relativize(file) + ": " + text.subSequence(matcher.start(), end));
    }
  }
}
