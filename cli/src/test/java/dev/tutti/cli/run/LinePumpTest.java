package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class LinePumpTest {
  private static List<String> lines(String input) {
    List<String> lines = new ArrayList<>();
    byte[] bytes = input.getBytes(UTF_8);
    new LinePump(new ByteArrayInputStream(bytes), line -> lines.add(new String(line, UTF_8))).run();
    return lines;
  }

  @Test
  void splitsAtLineEnds() {
    assertThat(lines("a\n\nbé\r\nc")).containsExactly("a", "", "bé", "c");
    assertThat(lines("a\n")).containsExactly("a");
    assertThat(lines("")).isEmpty();
  }

  @Test
  void joinsALineThatComesInSeveralReads() {
    String line = "x".repeat(20_000);
    assertThat(lines(line + "\n" + line)).containsExactly(line, line);
  }

  @Test
  void breaksALineThatIsTooLong() {
    String piece = "x".repeat(LinePump.MAX_LINE);
    assertThat(lines(piece + piece + "yz\nend\n")).containsExactly(piece, piece, "yz", "end");
    assertThat(lines(piece + "\nend\n")).containsExactly(piece, "end");
  }
}
