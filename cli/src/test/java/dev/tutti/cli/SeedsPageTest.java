package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Tests that everything named on the page about PyTorch's files exists. */
class SeedsPageTest {
  private static final Path ROOT = SourceTree.root();
  private static final Pattern SOURCE = Pattern.compile("`([a-z_]+\\.cuh)`");
  private static final Pattern CLASS = Pattern.compile("`([A-Z]\\w*[a-z]\\w*)(?:\\.(\\w+))?`");
  private static final Pattern REASON = Pattern.compile("\\((\\d+)\\)");

  /** The files by name: several modules may have a file of the same name. */
  private final Map<String, List<Path>> sources = sources();

  private final List<String> rows = rows();

  private static Map<String, List<Path>> sources() {
    Map<String, List<Path>> sources = new HashMap<>();
    try (Stream<Path> modules = Files.list(ROOT)) {
      for (Path module : modules.map(folder -> folder.resolve("src")).toList()) {
        if (Files.isDirectory(module)) {
          try (Stream<Path> files = Files.walk(module)) {
            files.forEach(
                file ->
                    sources
                        .computeIfAbsent(file.getFileName().toString(), n -> new ArrayList<>())
                        .add(file));
          }
        }
      }
      return sources;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static List<String> rows() {
    try (Stream<String> lines = Files.lines(ROOT.resolve("docs/seeds.md"))) {
      return lines.filter(line -> line.startsWith("|") && !line.matches("\\|[- |]+")).toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns a column of all non-empty rows. */
  private List<String> column(int number) {
    return rows.stream()
        .map(row -> row.split("\\|", -1)[number + 1].strip())
        .filter(cell -> !List.of("item", "here", "test", "").contains(cell))
        .toList();
  }

  @Test
  void everyClassMemberAndTestIsThere() throws IOException {
    List<String> missing = new ArrayList<>();
    List<String> cells = new ArrayList<>(column(1));
    cells.addAll(column(2));
    assertThat(cells).hasSizeGreaterThan(100);
    for (String cell : cells) {
      assertThat(cell).as("a cell names something").contains("`");
      for (Matcher name = SOURCE.matcher(cell); name.find(); ) {
        if (!sources.containsKey(name.group(1))) {
          missing.add(name.group());
        }
      }
      for (Matcher name = CLASS.matcher(cell); name.find(); ) {
        List<Path> files = sources.getOrDefault(name.group(1) + ".java", List.of());
        if (!hasMember(files, name.group(2))) {
          missing.add(name.group());
        }
      }
    }
    assertThat(missing).isEmpty();
  }

  private static boolean hasMember(List<Path> files, String member) throws IOException {
    if (member == null) {
      return !files.isEmpty();
    }
    Pattern call = Pattern.compile("\\b" + member + "\\(");
    for (Path file : files) {
      if (call.matcher(Files.readString(file)).find()) {
        return true;
      }
    }
    return false;
  }

  @Test
  void decisionsAreNumberedInOrder() throws IOException {
    List<String> numbers = new ArrayList<>();
    Matcher number =
        Pattern.compile("(?m)^(\\d+)\\. ")
            .matcher(Files.readString(ROOT.resolve("docs/design-decisions.md")));
    while (number.find()) {
      numbers.add(number.group(1));
    }
    assertThat(numbers)
        .hasSizeGreaterThan(90)
        .isEqualTo(IntStream.rangeClosed(1, numbers.size()).mapToObj(String::valueOf).toList());
  }

  @Test
  void everyRowIsCompleteOrHasItsReason() throws IOException {
    String decisions = Files.readString(ROOT.resolve("docs/design-decisions.md"));
    List<String> states = column(3);
    assertThat(states).hasSameSizeAs(column(0));
    for (String state : states) {
      assertThat(state).matches("(complete|different: ).*");
      Matcher reason = REASON.matcher(state);
      assertThat(state.startsWith("complete") || reason.find())
          .as("a reason in: %s", state)
          .isTrue();
      for (reason.reset(); reason.find(); ) {
        assertThat(decisions).contains("\n" + reason.group(1) + ". **");
      }
    }
  }
}
