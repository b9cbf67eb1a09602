package dev.tutti.cli.help;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Checks that shells and man can read what is written for them. */
@Timeout(300)
class HelpFilesCommandTest {
  @TempDir private Path folder;

  @Command(
      name = "tutti",
      description = "Plays. More follows.",
      version = "tutti 7",
      subcommands = {
        HelpFilesCommand.class,
        Play.class,
        Tour.class,
        Hidden.class,
        CommandLine.HelpCommand.class
      })
  private static final class Root {}

  @Command(
      name = "play",
      description = "Plays a 'score': all of it. Loudly.",
      footer = {"", ".5 is half as loud."})
  private static final class Play implements Runnable {
    @Option(names = "--how", paramLabel = "loud|soft", description = "How: [loud]. Default: soft.")
    private String how = "soft";

    @Option(names = "--score", paramLabel = "FILE", description = "What.")
    private Path score = Path.of("");

    @Option(
        names = {"-q", "--quick"},
        description = "Quickly.")
    private boolean quick;

    @Option(names = "--secret", hidden = true, description = "Nobody sees it.")
    private boolean secret;

    @Parameters(paramLabel = "PLAYER", arity = "0..*", description = "Who plays.")
    private List<String> players = List.of();

    @Override
    public void run() {
      throw new AssertionError("plays " + how + score + quick + secret + players);
    }
  }

  @Command(name = "tour", description = "Travels.", subcommands = Stop.class)
  private static final class Tour {}

  /** A command that starts a program. */
  @Command(name = "stop", description = "Stops there.")
  private static final class Stop implements Runnable {
    @Option(names = "--town", description = "Where.")
    private String town = "";

    @Parameters(paramLabel = "COMMAND", arity = "1..*", description = "What to do there.")
    private List<String> command = List.of();

    @Override
    public void run() {
      throw new AssertionError("stops in " + town + " for " + command);
    }
  }

  @Command(name = "hidden", hidden = true)
  private static final class Hidden {}

  @BeforeEach
  void write() {
    CommandLine root = new CommandLine(new Root());
    root.getSubcommands().get("tour").getSubcommands().get("stop").setStopAtPositional(true);
    assertThat(root.execute("help-files", folder.toString())).isZero();
  }

  @Test
  void everyVisibleCommandHasAManPage() throws Exception {
    assertThat(folder.resolve("man/man1"))
        .isDirectoryContaining("glob:**/tutti.1")
        .isDirectoryContaining("glob:**/tutti-play.1");
    try (var pages = Files.list(folder.resolve("man/man1"))) {
      assertThat(pages.map(page -> page.getFileName().toString()))
          .containsExactlyInAnyOrder("tutti.1", "tutti-play.1", "tutti-tour.1", "tutti-help.1");
    }
    assertThat(Files.readString(folder.resolve("man/man1/tutti-play.1")))
        .isEqualTo(
            """
            .TH TUTTI-PLAY 1 "" "tutti 7" "Tutti"
            .SH NAME
            tutti\\-play \\- Plays a 'score': all of it
            .SH SYNOPSIS
            tutti play [\\-q] [\\-\\-how=loud|soft] [\\-\\-score=FILE] [PLAYER...]
            .SH DESCRIPTION
            Plays a 'score': all of it. Loudly.
            .SH ARGUMENTS
            .TP
            \\fIPLAYER\\fR
            Who plays.
            .SH OPTIONS
            .TP
            \\fB\\-\\-how\\fR \\fIloud|soft\\fR
            How: [loud]. Default: soft.
            .TP
            \\fB\\-\\-score\\fR \\fIFILE\\fR
            What.
            .TP
            \\fB\\-q\\fR, \\fB\\-\\-quick\\fR
            Quickly.
            .SH NOTES
            .PP
            \\&.5 is half as loud.
            """);
  }

  @Test
  void bashCompletes() throws Exception {
    assertThat(
            ask(
                "tutti pl",
                "tutti help ",
                "tutti play --",
                "tutti play --how ",
                "tutti play --how l",
                "tutti play --how=l",
                "tutti play --score ",
                "tutti play --score=/tmp/",
                "tutti play --quick ",
                "tutti play -- --",
                "tutti tour ",
                "tutti tour stop --",
                "tutti tour stop --town ",
                "tutti tour stop --town ro:me pe",
                "tutti tour stop --town=ro:me -- pe",
                "tutti tour stop ./pe",
                "tutti tour stop -- --town",
                "tutti tour stop perform --",
                "tutti tour stop -- perform --town "))
        .containsExactly(
            "play",
            "help play tour",
            "--how --quick --score",
            "loud soft",
            "loud",
            "loud",
            "(files)",
            "(files)",
            "",
            "",
            "stop",
            "--town",
            "",
            "(files) (names) pen.txt perform",
            "(files) (names) pen.txt perform",
            "(files)",
            "(files) (names)",
            "(files)",
            "(files)");
  }

  @Test
  void bashCompletesValuesIfAnEqualsSignDividesNoWords() throws Exception {
    assertThat(bash("COMP_WORDBREAKS=' '; ask 'tutti play --how=l' 'tutti play --score=/tmp/'"))
        .containsExactly("--how=loud", "(files)");
  }

  @Test
  void bashCompletesFilesOfRedirections() throws Exception {
    assertThat(
            ask(
                "tutti > ",
                "tutti play --quick >> pl",
                "tutti play 2>pl",
                "tutti play &> ",
                "tutti > log pl",
                "tutti 2>&1 pl",
                "tutti tour stop > log pe",
                "tutti tour stop 2>log pe",
                "tutti play > --how --how "))
        .containsExactly(
            "(files)",
            "(files)",
            "(files)",
            "(files)",
            "play",
            "play",
            "(files) (names) pen.txt perform",
            "(files) (names) pen.txt perform",
            "loud soft");
  }

  @Test
  void bashCompletesWhereOtherCharactersSeparateFields() throws Exception {
    String wrap =
        """
        eval "inner() $(declare -f _tutti | tail -n +2)"
        _tutti() { local IFS=:; inner; }
        """;
    assertThat(bash(wrap + "ask 'tutti pl' 'tutti play --how '"))
        .containsExactly("play", "loud soft");
  }

  /** Returns what bash offers for each line, sorted. */
  private List<String> ask(String... lines) throws IOException, InterruptedException {
    return bash("ask '" + String.join("' '", lines) + "'");
  }

  private List<String> bash(String question) throws IOException, InterruptedException {
    Path program = folder.resolve("bin/perform");
    Files.createDirectories(program.getParent());
    Files.writeString(program, "");
    assertThat(program.toFile().setExecutable(true)).isTrue();
    Files.writeString(folder.resolve("pen.txt"), "");
    String setUp =
        """
        set -u
        source completion/tutti.bash
        complete -p tutti > /dev/null || exit 1
        # With these, readline offers files if nothing else is offered, and marks folders.
        compopt() {
          case $* in
            *default) printf '(files) ' ;;
            *filenames) printf '(names) ' ;;
          esac
        }
        ask() {
          local old=$PATH line PATH=bin
          for line in "$@"; do
            local separated=" $line "
            for each in = :; do
              [[ $COMP_WORDBREAKS != *$each* ]] || separated=${separated//$each/ $each }
            done
            read -ra COMP_WORDS <<< "$separated"
            [[ $line != *' ' ]] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
            _tutti > offered
            printf '%s\n' "${COMPREPLY[@]}" | PATH=$old sort -u >> offered
            echo $(< offered)
          done
        }
        """;
    return run("bash", "--norc", "-c", setUp + question).lines().map(String::strip).toList();
  }

  @Test
  void fishCompletes() throws Exception {
    require("fish");
    String words =
        """
        source completion/tutti.fish
        for line in 'tutti pl' 'tutti play --how ' 'tutti play --how=l' 'tutti play --score /us' \
            'tutti play --score=/us' 'tutti tour ' 'tutti tour stop --' \
            'tutti tour stop --town rome -- cat /us' 'tutti help '
          complete -C $line
        end
        """;
    assertThat(run("fish", "--no-config", "-c", words))
        .isEqualTo(
            """
            play\tPlays a 'score': all of it
            loud\tHow: [loud]
            soft\tHow: [loud]
            --how=loud\tHow: [loud]
            /usr/
            --score=/usr/
            stop\tStops there
            --town\tWhere
            /usr/
            help
            play
            tour
            """);
  }

  @Test
  void zshLoadsTheFunction() throws Exception {
    require("zsh");
    String words =
        """
        fpath=($PWD/completion $fpath)
        autoload -Uz compinit && compinit -u -d zcompdump
        echo $_comps[tutti]
        autoload +X -Uz _tutti && whence -w _tutti
        _arguments() { print -rl -- "$@"; state=arguments line=($next) next=stop; }
        for next in play tour; do _tutti; done
        """;
    assertThat(run("zsh", "-f", "-c", words))
        .startsWith("_tutti\n_tutti: function\n")
        .contains("--how=[How\\: \\[loud\\]]:value:(loud soft)\n")
        .contains("--score=[What]:file:_files\n")
        .contains("--town=[Where]:value:\n(-)*::command: _normal\n")
        .contains("-q[Quickly]\n--quick[Quickly]\n")
        .doesNotContain("secret");
  }

  private static void require(String shell) {
    assumeTrue(
        List.of(System.getenv("PATH").split(":")).stream()
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, shell))),
        shell + " is not installed");
  }

  private String run(String... command) throws IOException, InterruptedException {
    Path out = folder.resolve("out");
    Process process =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(out.toFile())
            .start();
    try {
      assertThat(process.waitFor(4, TimeUnit.MINUTES)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    return Files.readString(out);
  }
}
