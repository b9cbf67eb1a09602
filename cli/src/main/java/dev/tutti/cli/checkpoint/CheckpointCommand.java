package dev.tutti.cli.checkpoint;

import dev.tutti.checkpoint.StoredCheckpoint;
import dev.tutti.checkpoint.StoredCheckpoint.TensorInfo;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.process.Terminal;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The command checkpoint, which shows and checks checkpoints. */
@Command(
    name = "checkpoint",
    description = "Lists, checks or shows the checkpoints in a folder.",
    descriptionHeading = "%n",
    parameterListHeading = "%n",
    optionListHeading = "%nOptions:%n",
    commandListHeading = "%nCommands:%n")
public final class CheckpointCommand implements Runnable {
  private static final String FOLDER = "The folder of the job's checkpoints.";
  private static final String DELETED = "deleted since it was listed";
  private static final String STEP = "The step. Default: the latest.";

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Terminal terminal;

  public CheckpointCommand(Terminal terminal) {
    this.terminal = terminal;
  }

  /** Prints the help; without a subcommand there is nothing else to do. */
  @Override
  public void run() {
    spec.commandLine().usage(terminal.out());
  }

  @Command(
      name = "list",
      description =
          "Prints for each checkpoint its step, how many ranks saved it, and its size in bytes.",
      descriptionHeading = "%n",
      parameterListHeading = "%n")
  void list(@Parameters(paramLabel = "FOLDER", description = FOLDER) Path folder)
      throws IOException {
    for (long step : steps(folder)) {
      try {
        StoredCheckpoint checkpoint = StoredCheckpoint.open(folder, step);
        terminal
            .out()
            .printf(
                "step %d  %d ranks  %d tensors  %d bytes%n",
                step, checkpoint.ranks(), checkpoint.tensors().size(), checkpoint.byteSize());
      } catch (IOException e) {
        String fault = isDeleted(folder, step) ? DELETED : text(e);
        terminal.out().printf("step %d  %s%n", step, fault);
      }
    }
  }

  /** Returns the steps of the checkpoints in a folder, and says so if there are none. */
  private List<Long> steps(Path folder) throws IOException {
    List<Long> steps = StoredCheckpoint.steps(folder);
    if (steps.isEmpty()) {
      terminal.out().println("no checkpoint in " + folder);
    }
    return steps;
  }

  /** Returns whether a checkpoint that was listed is no longer there, which is no fault of it. */
  private static boolean isDeleted(Path folder, long step) throws IOException {
    return !StoredCheckpoint.steps(folder).contains(step);
  }

  private static String text(IOException e) {
    return Printable.line(Reasons.of(e));
  }

  @Command(
      name = "verify",
      description =
          "Reads all files of a checkpoint, or of all, and compares them with their checksums."
              + " Exits with 1 if a byte has changed, or there is no checkpoint.",
      descriptionHeading = "%n",
      parameterListHeading = "%n",
      optionListHeading = "%nOptions:%n")
  int verify(
      @Parameters(paramLabel = "FOLDER", description = FOLDER) Path folder,
      @Option(names = "--step", paramLabel = "N", description = "The step. Default: all.")
          @Nullable Long step)
      throws IOException {
    List<Long> steps = step == null ? steps(folder) : List.of(step);
    int damaged = steps.isEmpty() ? 1 : 0;
    for (long one : steps) {
      try {
        StoredCheckpoint checkpoint = StoredCheckpoint.open(folder, one);
        checkpoint.verify();
        terminal.out().printf("step %d: %d bytes are right%n", one, checkpoint.byteSize());
      } catch (IOException e) {
        boolean isDeleted = step == null && isDeleted(folder, one);
        terminal.out().printf("step %d: %s%n", one, isDeleted ? DELETED : text(e));
        damaged = isDeleted ? damaged : 1;
      }
    }
    return damaged;
  }

  @Command(
      name = "show",
      description = "Prints the tensors, counters and values of a checkpoint.",
      descriptionHeading = "%n",
      parameterListHeading = "%n",
      optionListHeading = "%nOptions:%n")
  void show(
      @Parameters(paramLabel = "FOLDER", description = FOLDER) Path folder,
      @Option(names = "--step", paramLabel = "N", description = STEP) @Nullable Long step)
      throws IOException {
    List<Long> steps = step == null ? steps(folder) : List.of(step);
    if (steps.isEmpty()) {
      return;
    }
    StoredCheckpoint checkpoint;
    try {
      checkpoint = StoredCheckpoint.open(folder, steps.getLast());
    } catch (IOException e) {
      throw new LaunchException(1, Reasons.of(e), e);
    }
    List<String> lines = new ArrayList<>();
    lines.add("step %d, saved by %d ranks".formatted(checkpoint.step(), checkpoint.ranks()));
    checkpoint.tensors().stream()
        .sorted(Comparator.comparing(TensorInfo::section).thenComparing(TensorInfo::name))
        .forEach(
            tensor ->
                lines.add(
                    "%s  %s  %s%s"
                        .formatted(
                            tensor.section(),
                            tensor.name(),
                            tensor.dtype().label(),
                            tensor.shape())));
    checkpoint
        .counters()
        .forEach((section, counters) -> lines.add("%s  %s".formatted(section, counters)));
    checkpoint.values().forEach((name, values) -> lines.add("%s  %s".formatted(name, values)));
    lines.forEach(line -> terminal.out().println(Printable.line(line)));
  }
}
