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
      subcommands = {HelpFilesCommand.class, Play.class, Hidden.class})
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

  @Command(name = "hidden", hidden = true)
  private static final class Hidden {}

  @BeforeEach
  void write() {
    assertThat(new CommandLine(new Root()).execute("help-files", folder.toString())).isZero();
  }

  @Test
  void everyVisibleCommandHasAManPage() throws Exception {
    assertThat(folder.resolve("man/man1"))
        .isDirectoryContaining("glob:**/tutti.1")
        .isDirectoryContaining("glob:**/tutti-play.1");
    try (var pages = Files.list(folder.resolve("man/man1"))) {
      assertThat(pages).hasSize(2);
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
    String words =
        """
        source completion/tutti.bash
        complete -p tutti > /dev/null || exit 1
        compopt() { :; }
        ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); COMP_LINE="$*"
          _complete_tutti; printf '%s\\n' "${COMPREPLY[@]}" | sort; }
        ask tutti pl
        ask tutti play --
        """;
    assertThat(run("bash", "-c", words)).isEqualTo("play\n--how\n--quick\n--score\n");
  }

  @Test
  void fishCompletes() throws Exception {
    require("fish");
    String words =
        "source completion/tutti.fish; complete -C 'tutti pl'; complete -C 'tutti play --how '";
    assertThat(run("fish", "--no-config", "-c", words))
        .isEqualTo("play\tPlays a 'score': all of it\nloud\tHow: [loud]\nsoft\tHow: [loud]\n");
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
        _arguments() { print -rl -- "$@"; state=arguments line=(play); }
        _tutti
        """;
    assertThat(run("zsh", "-f", "-c", words))
        .startsWith("_tutti\n_tutti: function\n")
        .contains("--how=[How\\: \\[loud\\]]:value:(loud soft)\n")
        .contains("--score=[What]:file:_files\n")
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
