package dev.tutti.cli.status;

import dev.tutti.cli.process.Terminal;
import dev.tutti.json.Json;
import dev.tutti.runtime.view.JobView;
import dev.tutti.spi.Printable;
import java.util.List;
import picocli.CommandLine.Option;

/** How commands print the view of a job. */
public final class JobOutput {
  private static final String RESET = "\u001b[0m";

  private enum Format {
    text,
    json
  }

  @Option(
      names = "--format",
      paramLabel = "text|json",
      description = "Output: lines for people, or a line of JSON. Default: text.")
  private Format format = Format.text;

  /** Prints a view; on a terminal, the verdict is colored. */
  public void print(JobView job, Terminal terminal) {
    if (format == Format.json) {
      terminal.out().println(Json.write(job.toMap()));
    } else {
      List<String> lines = job.lines().stream().map(Printable::line).toList();
      int color =
          switch (job.verdict().state()) {
            case HEALTHY -> 32;
            case PAUSED, SLOW -> 33;
            case HUNG, MISMATCH, FAILED -> 31;
          };
      String verdict = lines.getFirst();
      StringBuilder text = new StringBuilder();
      text.append(terminal.outIsTerminal() ? "\u001b[1;" + color + "m" + verdict + RESET : verdict);
      lines.stream().skip(1).forEach(line -> text.append('\n').append(line));
      terminal.out().print(text.append('\n'));
    }
    terminal.out().flush();
  }
}
