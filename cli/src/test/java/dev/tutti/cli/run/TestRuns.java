package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.OwnJava;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Starts {@code tutti run} for a test, after which no rank may be left. */
final class TestRuns implements AfterEachCallback {
  private final String runId = UUID.randomUUID().toString();

  CommandProcess start(String... arguments) throws IOException {
    return CommandProcess.start(
        Stream.concat(Stream.of("run", "--rdzv-id=" + runId), Stream.of(arguments))
            .toArray(String[]::new));
  }

  CommandProcess start(String[] command, String... options) throws IOException {
    return start(Stream.concat(Stream.of(options), Stream.of(command)).toArray(String[]::new));
  }

  /** Starts it as the program of the {@code "$@"} in a script. */
  CommandProcess startIn(String script, String... command) throws IOException {
    List<String> arguments = new ArrayList<>(List.of("run", "--rdzv-id=" + runId, "--"));
    arguments.addAll(List.of(command));
    return CommandProcess.startInside(List.of("bash", "-c", script, "bash"), Map.of(), arguments);
  }

  /**
   * Starts ranks whose program is a class of these tests, with the flags of this JVM alone. They
   * wait for answers of others for as long as it takes.
   */
  CommandProcess startRanks(Class<?> program, String... options) throws IOException {
    return startRanks(program, List.of(), options);
  }

  CommandProcess startRanks(Class<?> program, List<String> arguments, String... options)
      throws IOException {
    List<String> command =
        new ArrayList<>(List.of("run", "--rdzv-id=" + runId, "--jvm-flags=none"));
    command.addAll(List.of(options));
    command.add("--");
    command.addAll(OwnJava.command());
    command.add(program.getName());
    command.addAll(arguments);
    return CommandProcess.startInside(List.of(), Map.of(), command);
  }

  /** Returns the port on which node 0 reports that its store listens. */
  static String portOf(CommandProcess zero) throws InterruptedException {
    String listens = "tutti run: the store listens on port ";
    return zero.awaitLine(line -> line.startsWith(listens))
        .replaceAll("\\D+ port (\\d+); .*", "$1");
  }

  /** Asserts that all nodes end for the same reason, which each reports once. */
  static void assertEndWith(String message, CommandProcess... nodes) throws Exception {
    for (CommandProcess node : nodes) {
      assertThat(node.exitCode()).as(() -> node.lines().toString()).isEqualTo(1);
      assertThat(node.lines())
          .containsOnlyOnce(message)
          .noneMatch(line -> line.contains("tutti-run"))
          .noneMatch(line -> line.contains("exits before"));
    }
  }

  /**
   * Waits until the given number of ranks run; a rank that execs another program shows no
   * environment for a moment.
   */
  void awaitProcesses(int count) {
    long deadline = System.nanoTime() + Duration.ofMinutes(4).toNanos();
    while (TestPlans.processesOf(runId).size() != count && System.nanoTime() < deadline) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(TestPlans.processesOf(runId)).hasSize(count);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    assertThat(TestPlans.processesOf(runId)).isEmpty();
  }
}
