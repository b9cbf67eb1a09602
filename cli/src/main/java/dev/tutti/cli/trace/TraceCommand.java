package dev.tutti.cli.trace;

import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.status.JobOutput;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.view.JobPage;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobView;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The command trace, which compares the flight records of all ranks. */
@Command(
    name = "trace",
    sortOptions = false,
    description =
        "Compares the flight records or JFR files of all ranks. The first line says which rank is"
            + " to blame, and for what. The table shows where each rank stood, how often it came"
            + " last, and how much of its time it waited. Judges failures again from what the ranks"
            + " recorded.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {
      "",
      "The exit code is 1 if the job failed or hung, calls do not match, a rank left no record or"
          + " a verdict does not follow from what was recorded, and 2 if a file cannot be read,"
          + " there is nothing to compare, or the files are of several jobs."
    })
public final class TraceCommand implements Callable<Integer> {
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
      description = "Write a page with the verdict, the ranks and a time line.")
  private @Nullable Path html;

  @Option(
      names = "--perfetto",
      paramLabel = "FILE",
      description = "Write events for ui.perfetto.dev or chrome://tracing.")
  private @Nullable Path perfetto;

  @Mixin private JobOutput output = new JobOutput();

  private final Terminal terminal;

  public TraceCommand(Terminal terminal) {
    this.terminal = terminal;
  }

  @Override
  public Integer call() {
    JobRecords records = read();
    records.notes().forEach(note -> terminal.err().println("tutti trace: " + Printable.line(note)));
    JobView job = JobView.of(records);
    boolean isWrong = job.verdict().state().compareTo(State.HUNG) >= 0 || !job.problems().isEmpty();
    if (!isWrong && records.operations().values().stream().allMatch(List::isEmpty)) {
      throw new IllegalArgumentException("nothing to compare: no operations in " + listed());
    }
    output.print(job, terminal);
    if (html != null) {
      write("--html", html, JobPage.of(job));
    }
    if (perfetto != null) {
      write("--perfetto", perfetto, PerfettoEvents.write(job));
    }
    return isWrong ? 1 : 0;
  }

  private JobRecords read() {
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
}
