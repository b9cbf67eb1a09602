package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.Terminal;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest {
  private final TestTerminal terminal = new TestTerminal();

  private int tutti(String... arguments) {
    return terminal.tutti(Map.of(), arguments);
  }

  @Test
  void listsTheCommandsWhenThereIsNoSuch() {
    assertThat(tutti("foo", "--bar")).isEqualTo(Main.USAGE);
    assertThat(terminal.err().strip())
        .isEqualTo(
            "tutti: no such command: 'foo'; commands are run, bench, calibrate, store, doctor,"
                + " trace, status, scale, checkpoint, token, completion, help (see tutti --help)");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "help nosuch | tutti: no such command: 'nosuch'; commands are run, bench, ",
        "docter | completion, help; did you mean doctor? (see tutti --help)",
        "help docter | completion, help; did you mean doctor? (see tutti --help)",
        "store sevre | set, stat, watch; did you mean serve? (see tutti store --help)",
        "run --nprc 4 | tutti run: Unknown option: '--nprc'; did you mean --nproc? (see",
        "run --lingr=4 true | tutti run: Unknown option: '--lingr=4'; did you mean --linger? (see",
      })
  void saysWhatAMisspelledNameMayMean(String arguments, String message) {
    assertThat(tutti(arguments.split(" "))).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).contains(message).hasLineCount(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"store get key", "status"})
  void namesTheOptionWhoseValueIsNoTime(String command) {
    assertThat(tutti((command + " --timeout abc").split(" "))).isEqualTo(Main.USAGE);
    assertThat(terminal.err().strip())
        .startsWith("tutti ")
        .contains(": Invalid value for option '--timeout': 'abc': expected a time such as ")
        .hasLineCount(1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "doctor x | tutti doctor: unexpected argument 'x' (see tutti doctor --help)",
        "bench --nproc= | tutti bench: Invalid value for option '--nproc': '' is no whole number (",
        "bench --nproc-per-node=x | tutti bench: Invalid value for option '--nproc-per-node': 'x' ",
        "status --prefix= | tutti status: --prefix must not be empty; leave it out for no prefix",
        "store add k x | tutti store add: Invalid value for N: 'x' is no whole number (see",
      })
  void saysWhatIsWrongWithAnArgument(String arguments, String message) {
    assertThat(tutti(arguments.split(" "))).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).startsWith(message).hasLineCount(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"get", "set", "add", "wait", "watch"})
  void refusesAnEmptyKey(String command) {
    assertThat(tutti("store", command, "", "1")).isEqualTo(Main.USAGE);
    assertThat(terminal.err())
        .startsWith("tutti store " + command + ": Invalid value for KEY: '' is no key (see ");
  }

  @Test
  void describesItsHelpLikeItsOtherCommands() {
    assertThat(tutti("--help")).isZero();
    assertThat(terminal.out()).containsPattern("(?m)^  help +Prints the help of a command\\.$");
  }

  @Test
  void refusesToAskForTheStatusWithoutAPause() {
    assertThat(tutti("status", "--every", "0")).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).startsWith("tutti status: --every must be longer than 0");
  }

  /** Runs a command whose standard output is a full disk. */
  private int tuttiOnFullDisk(String... arguments) {
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException("No space left on device");
          }
        };
    PrintStream out = new PrintStream(full, true, UTF_8);
    return Main.execute(terminal.terminal(out), Map.of(), arguments);
  }

  @ParameterizedTest
  @ValueSource(strings = {"doctor", "--help", "completion zsh"})
  void failsWhenItsOutputCannotBeWritten(String arguments) {
    assertThat(tuttiOnFullDisk(arguments.split(" "))).isEqualTo(1);
    assertThat(terminal.err()).isEqualTo("tutti: cannot write to standard output\n");
  }

  @Test
  void keepsTheExitCodeOfACommandWhoseOutputCannotBeWritten() {
    assertThat(tuttiOnFullDisk("run", "--", "/bin/sh", "-c", "echo x; exit 7")).isEqualTo(7);
    assertThat(terminal.err())
        .startsWith("tutti run: the first to fail: rank 0 ended with exit code 7")
        .endsWith("\ntutti: cannot write to standard output\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"run", "bench"})
  void helpSaysWhatATimeIs(String command) {
    assertThat(tutti(command, "--help")).isZero();
    assertThat(terminal.out().replaceAll("\\s+", " "))
        .contains("A TIME without a unit is in seconds; units are ms, s, m and h");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "run", "bench", "store serve", "doctor", "completion"})
  void helpEndsWithWhereTheDocumentationIs(String command) {
    assertThat(tutti((command + " --help").strip().split(" "))).isZero();
    assertThat(terminal.out()).endsWith("\n\nDocumentation: https://tutti.dev\n");
  }

  private static Stream<Arguments> errors() {
    return Stream.of(
        Arguments.of(
            new NoClassDefFoundError("a/B"),
            "java.lang.NoClassDefFoundError: a/B (--debug prints the stack trace)"),
        Arguments.of(
            new OutOfMemoryError("Java heap space"),
            "java.lang.OutOfMemoryError: Java heap space (--debug prints the stack trace)"),
        Arguments.of(
            new ExceptionInInitializerError(new IllegalStateException("no")),
            "java.lang.ExceptionInInitializerError: java.lang.IllegalStateException: no (--debug"
                + " prints the stack trace)"));
  }

  @ParameterizedTest
  @MethodSource("errors")
  void saysInOneLineWhichErrorEndedACommand(Error error, String message) {
    PrintStream out =
        new PrintStream(new ByteArrayOutputStream(), true, UTF_8) {
          @Override
          public void println(String line) {
            throw error;
          }
        };
    Terminal failing = terminal.terminal(out);
    assertThat(Main.execute(failing, Map.of(), "doctor")).isEqualTo(1);
    assertThat(terminal.err()).isEqualTo("tutti doctor: " + message + "\n");
    terminal.reset();
    // A command that is implemented as a method.
    String[] serve = {"store", "serve", "--at", "tcp://127.0.0.1:0"};
    assertThat(Main.execute(failing, Map.of(), serve)).isEqualTo(1);
    assertThat(terminal.err()).isEqualTo("tutti store serve: " + message + "\n");
    terminal.reset();
    assertThat(Main.execute(failing, Map.of(), "doctor", "--debug")).isEqualTo(1);
    assertThat(terminal.err())
        .startsWith(error + "\n\tat dev.tutti.cli.MainTest.errors(")
        .endsWith("tutti doctor: " + message + "\n");
  }

  @Test
  void saysInPlainWordsWhichFileCannotBeWritten(@TempDir Path folder) throws Exception {
    Path file = Files.createFile(folder.resolve("completion"));
    assertThat(tutti("help-files", folder.toString())).isEqualTo(1);
    assertThat(terminal.err())
        .isEqualTo("tutti help-files: " + file + " exists and is not a directory\n");
  }

  @Test
  void namesAnUnknownOption() {
    assertThat(tutti("--foo")).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).startsWith("tutti: Unknown option: '--foo'");
  }
}
