package dev.tutti.cli.trace;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests what {@code tutti trace} says of files that it cannot read or write. */
class TraceRefusalTest {
  private static final String ENTRY =
      "{\"op\":\"allReduce\",\"collective_seq_id\":1,\"state\":\"completed\"}";

  @TempDir Path folder;

  private final TestTerminal terminal = new TestTerminal();

  private int trace(Object... arguments) {
    String[] all =
        Stream.concat(Stream.of("trace"), Arrays.stream(arguments).map(Object::toString))
            .toArray(String[]::new);
    return terminal.tutti(Map.of(), all);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{\"rank\":5000000000,\"entries\":[]} | not a flight record: '5000000000' is no rank",
        "{\"rank\":-1,\"entries\":[]} | not a flight record: '-1' is no rank",
        "{\"entries\":[]} | not a flight record: '99999999999' is no rank",
        "{\"rank\":0,\"entries\":[],\"pg_config\":{\"0\":{\"ranks\":\"[0,x]\"}}}"
            + " | not a flight record: 'x' is no rank",
        "{\"rank\":0,\"entries\":[{\"op\":\"broadcast\",\"root\":4294967296}]}"
            + " | not a flight record: '4294967296' is no rank",
        "\u00ff | not a flight record: not text in UTF-8",
        "[\"\\u+123\"] | not JSON: an invalid escape at character 4",
        "[99999999999999999999] | not JSON: a number that needs more than 64 bits at character 21",
        "FLR | not a whole recording",
        "\u0080\u0002q\u0000. | not a pickle of plain values: it uses values that it does not"
            + " contain",
      })
  void saysWhatIsWrongWithAFile(String content, String message) throws Exception {
    Path file = Files.writeString(folder.resolve("rank_99999999999"), content, ISO_8859_1);
    assertThat(trace(file)).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().lines())
        .singleElement()
        .asString()
        .startsWith("tutti trace: " + file + ": " + message)
        .doesNotContain("java.", "Exception", "null");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {"|", "{} | rank 0 has entries that name no operation: 1"})
  void saysThatThereIsNothingToCompare(String entry, String note) throws Exception {
    Path file = folder.resolve("rank_0");
    Files.writeString(file, "{\"entries\":[" + (entry == null ? "" : entry) + "]}");
    assertThat(trace(file)).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err())
        .contains(note == null ? "" : "tutti trace: " + note)
        .endsWith("tutti trace: nothing to compare: no operations in " + file + "\n");
  }

  @Test
  void showsTheCauseOfARefusalOnRequest() throws Exception {
    Path file = Files.writeString(folder.resolve("rank_0"), "[1");
    assertThat(trace("--debug", file)).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).contains("Caused by: java.lang.IllegalArgumentException: not JSON");
  }

  @Test
  void leavesOutWhatIsNoRecordInAFolder() throws Exception {
    Files.writeString(folder.resolve("rank_0"), "{\"entries\":[" + ENTRY + "]}");
    assertThat(
            trace(
                folder,
                "--html",
                folder.resolve("page.html"),
                "--perfetto",
                folder.resolve("events.json")))
        .isZero();
    String first = terminal.out();
    Files.writeString(folder.resolve("junk"), "\u00ff", ISO_8859_1);
    terminal.reset();
    assertThat(trace(folder)).isZero();
    assertThat(terminal.out()).isEqualTo(first);
    assertThat(terminal.err().lines())
        .containsExactlyInAnyOrder(
            "tutti trace: "
                + folder.resolve("page.html")
                + " is left out: not JSON: expected a"
                + " value at character 0",
            "tutti trace: "
                + folder.resolve("events.json")
                + " is left out: not a flight record:"
                + " it has no entries",
            "tutti trace: "
                + folder.resolve("junk")
                + " is left out: not a flight record: not"
                + " text in UTF-8");
  }

  @Test
  void saysWhichFileIsMissing() {
    Path file = folder.resolve("rank_0");
    assertThat(trace(file)).isEqualTo(Main.USAGE);
    assertThat(terminal.err().trim())
        .isEqualTo("tutti trace: cannot read the records: no such file or directory: " + file);
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void saysWhichFileItCannotRead() {
    // Linux fails to read address 0 of a process.
    assertThat(trace("/proc/self/mem")).isEqualTo(Main.USAGE);
    assertThat(terminal.err().trim())
        .isEqualTo("tutti trace: cannot read the records: /proc/self/mem: Input/output error");
  }

  @ParameterizedTest
  @CsvSource({"FILE, ''", "option '--html', --html="})
  void aFileHasAName(String what, String argument) {
    assertThat(trace(argument, "rank_0")).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).isEmpty();
    assertThat(terminal.err().trim())
        .isEqualTo(
            "tutti trace: Invalid value for "
                + what
                + ": '' is no file or folder (see tutti trace --help)");
  }

  @ParameterizedTest
  @CsvSource({"--html", "--perfetto"})
  void saysWhichFileItCannotWrite(String option) throws Exception {
    Path record = Files.writeString(folder.resolve("rank_0"), "{\"entries\":[" + ENTRY + "]}");
    Path file = folder.resolve("none").resolve("x");
    assertThat(trace(record, option, file)).isEqualTo(Main.USAGE);
    assertThat(terminal.out()).startsWith("healthy\n");
    assertThat(terminal.err().trim())
        .isEqualTo("tutti trace: cannot write " + option + ": no such file or directory: " + file);
  }
}
