package dev.tutti.cli.trace;

import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.trace.TraceAnalysis.Share;
import dev.tutti.cli.trace.TraceAnalysis.Straggling;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The command trace, which compares the flight records of all ranks. */
@Command(
    name = "trace",
    sortOptions = false,
    description =
        "Compares the flight records or JFR files of all ranks: finds calls that do not match,"
            + " missing ranks and operations that did not complete, and shows which ranks come"
            + " last, how long the others wait, and which pauses of the garbage collector are the"
            + " cause. Judges failures again from what the ranks recorded.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {
      "",
      "The exit code is 1 if calls do not match, a rank is missing or a verdict does not follow"
          + " from what was recorded, and 2 if a file cannot be read, there is nothing to compare,"
          + " or the files are of several jobs."
    })
public final class TraceCommand implements Callable<Integer> {
  private static final int MOST_PAUSES = 10;
  private static final int MOST_UNFINISHED = 10;

  @Parameters(
      arity = "1..*",
      paramLabel = "FILE",
      description =
          "Files, or folders of files, with their subfolders: flight records of Tutti or PyTorch"
              + " (JSON or pickle), or JFR.")
  private List<Path> files = new ArrayList<>();

  @Option(
      names = "--html",
      paramLabel = "FILE",
      description = "Write a page with the report and a time line.")
  private @Nullable Path html;

  @Option(
      names = "--perfetto",
      paramLabel = "FILE",
      description = "Write events for ui.perfetto.dev or chrome://tracing.")
  private @Nullable Path perfetto;

  private final Terminal terminal;

  public TraceCommand(Terminal terminal) {
    this.terminal = terminal;
  }

  @Override
  public Integer call() {
    RankTrace trace = read();
    trace.notes().forEach(note -> terminal.err().println("tutti trace: " + Printable.line(note)));
    TraceAnalysis analysis = TraceAnalysis.of(trace);
    Replay replay = Replay.of(trace);
    analysis.problems.addAll(replay.problems);
    if (analysis.problems.isEmpty()
        && replay.verdicts.isEmpty()
        && trace.entries().values().stream().allMatch(List::isEmpty)) {
      throw new IllegalArgumentException("nothing to compare: no operations in " + listed());
    }
    String report = Printable.lines(report(analysis, replay, Unfinished.of(trace)));
    terminal.out().print(report);
    TimeLine line = new TimeLine(trace, analysis);
    if (html != null) {
      write("--html", html, line.toHtml(report));
    }
    if (perfetto != null) {
      write("--perfetto", perfetto, line.toPerfetto());
    }
    return analysis.problems.isEmpty() ? 0 : 1;
  }

  private RankTrace read() {
    try {
      return TraceFiles.read(files);
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot read the records: " + Reasons.of(e), e);
    }
  }

  private String listed() {
    return files.stream().map(Path::toString).collect(Collectors.joining(", "));
  }

  private static void write(String option, Path file, String text) {
    try {
      Files.writeString(file, text);
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot write " + option + ": " + Reasons.of(e), e);
    }
  }

  private static String report(TraceAnalysis analysis, Replay replay, List<String> unfinished) {
    StringBuilder text = new StringBuilder();
    analysis.problems.forEach(problem -> text.append("PROBLEM ").append(problem).append('\n'));
    if (analysis.problems.isEmpty()) {
      text.append("all collectives match, and no rank is missing\n");
    }
    replay.verdicts.forEach(verdict -> text.append("VERDICT ").append(verdict).append('\n'));
    unfinished.stream()
        .limit(MOST_UNFINISHED)
        .forEach(each -> text.append("INCOMPLETE ").append(each).append('\n'));
    if (unfinished.size() > MOST_UNFINISHED) {
      text.append("INCOMPLETE and more: ").append(unfinished.size() - MOST_UNFINISHED);
      text.append('\n');
    }
    analysis.heldUp.stream()
        .sorted(Comparator.comparingLong(HeldUp::pausedNanos).reversed())
        .limit(MOST_PAUSES)
        .forEach(each -> text.append("PAUSE ").append(each.describe()).append('\n'));
    text.append(
        "\nrank  collectives  time s  waiting  moving  last  lag ms  others waited ms  last in\n");
    for (Map.Entry<Integer, Share> each : analysis.shares.entrySet()) {
      Share share = each.getValue();
      Straggling last = analysis.stragglers.getOrDefault(each.getKey(), new Straggling());
      String operations =
          last.byOperation.entrySet().stream()
              .map(one -> one.getKey() + " (" + one.getValue() + "x)")
              .collect(Collectors.joining(", "));
      text.append(
          String.format(
              Locale.ROOT,
              "%4d  %11d  %6.2f  %6s%%  %5s%%  %4d  %6.3f  %16.3f  %s%n",
              each.getKey(),
              share.collectives,
              share.spanNanos / 1e9,
              percent(share.waitingNanos, share.spanNanos),
              percent(share.movingNanos, share.spanNanos),
              last.times,
              last.medianLag() / 1e6,
              last.waitedNanos / 1e6,
              operations));
    }
    return text.toString();
  }

  private static String percent(long part, long whole) {
    return whole == 0 ? "0.0" : String.format(Locale.ROOT, "%.1f", 100.0 * part / whole);
  }
}
