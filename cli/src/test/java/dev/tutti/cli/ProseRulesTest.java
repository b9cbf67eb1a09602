package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Tests that the checks of language find what they should find. */
class ProseRulesTest {
  private static final String FORTY = "Word " + "word ".repeat(38) + "word.";
  private static final String FORTY_ONE = "Word " + "word ".repeat(39) + "word.";

  @Test
  void findsALongSentence() {
    String page = "# Title\n\n" + FORTY + "\n" + FORTY_ONE + "\n\n* " + FORTY_ONE + "\n* Short.\n";
    assertThat(Prose.sentencesOver(40, page)).hasSize(2);
  }

  @Test
  void countsACodeSpanAsOneWordAndNoCodeBlocksTablesAndTargets() {
    String page =
        """
        Word %s`java -cp a.jar b c d` [word](a page.md).

        ```
        %s
        ```

        | %s |
        """
            .formatted("word ".repeat(37), FORTY_ONE, FORTY_ONE);
    assertThat(Prose.sentencesOver(40, page)).isEmpty();
    assertThat(Prose.sentencesOver(39, page)).hasSize(1);
  }

  @Test
  void findsALongLine() {
    String line = "x".repeat(120);
    assertThat(Prose.linesOver(120, line + "\n" + line + "y\n")).containsExactly(line + "y");
  }

  @Test
  void findsUnwantedWords() throws Exception {
    List<String> plain = Prose.unwanted().stream().filter(word -> word.matches("[a-z ]+")).toList();
    assertThat(plain).hasSizeGreaterThan(400);
    Pattern unwanted = Prose.anyOf(Prose.unwanted());
    for (String word : plain) {
      assertThat(unwanted.matcher("It " + word + " then.").find()).as(word).isTrue();
    }
  }

  @Test
  void findsAPhraseAcrossLines() {
    assertThat(Prose.anyOf(List.of("blue tree")).matcher("is blue\n   * tree").find()).isTrue();
    assertThat(Prose.anyOf(List.of("blue tree")).matcher("blue trees").find()).isFalse();
  }
}
