package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.OwnJava;
import dev.tutti.cli.rank.LinePump;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** A process that runs {@code tutti}, as users do. */
public final class CommandProcess implements AutoCloseable {
  /** The longest wait: on a busy machine, a process may take a minute to start others. */
  private static final Duration LONG = Duration.ofMinutes(4);

  private final Process process;
  private final List<String> lines = new ArrayList<>();
  private final List<Thread> readers = new ArrayList<>();

  private CommandProcess(Process process) {
    this.process = process;
    read(process.getInputStream());
    read(process.getErrorStream());
  }

  public static CommandProcess start(String... arguments) throws IOException {
    List<String> command = new ArrayList<>(TestPlans.DEFAULT_SIGNALS);
    command.addAll(OwnJava.command());
    command.add(Main.class.getName());
    command.addAll(List.of(arguments));
    return new CommandProcess(new ProcessBuilder(command).start());
  }

  /** Starts {@code tutti} through a command that starts others, with additional variables. */
  static CommandProcess startInside(
      List<String> inside, Map<String, String> environment, List<String> arguments)
      throws IOException {
    List<String> command = new ArrayList<>(inside);
    command.addAll(TestPlans.DEFAULT_SIGNALS);
    List<String> java = OwnJava.command();
    // First processes of several containers have the same number, and would share a file by it.
    java.add(1, "-XX:-UsePerfData");
    command.addAll(java);
    command.add(Main.class.getName());
    command.addAll(arguments);
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putAll(environment);
    return new CommandProcess(builder.start());
  }

  /** Starts another program of the tests, with additional variables. */
  public static CommandProcess startProgram(
      Map<String, String> environment, Class<?> program, String... arguments) throws IOException {
    List<String> command = OwnJava.command();
    command.add(program.getName());
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putAll(environment);
    return new CommandProcess(builder.start());
  }

  private void read(java.io.InputStream stream) {
    readers.add(
        Thread.ofPlatform()
            .daemon()
            .start(
                new LinePump(
                    stream,
                    line -> {
                      synchronized (lines) {
                        lines.add(new String(line, UTF_8));
                        lines.notifyAll();
                      }
                    })));
  }

  public long pid() {
    return process.pid();
  }

  /** Returns all lines of both outputs so far. */
  public List<String> lines() {
    synchronized (lines) {
      return List.copyOf(lines);
    }
  }

  public void await(Predicate<List<String>> condition) throws InterruptedException {
    long deadline = System.nanoTime() + LONG.toNanos();
    synchronized (lines) {
      while (!condition.test(lines)) {
        long left = (deadline - System.nanoTime()) / 1_000_000;
        if (left <= 0) {
          throw new AssertionError("not seen in time; got " + lines);
        }
        lines.wait(left);
      }
    }
  }

  /** Waits for a matching line, and returns the first one. */
  public String awaitLine(Predicate<String> condition) throws InterruptedException {
    await(all -> all.stream().anyMatch(condition));
    return lines().stream().filter(condition).findFirst().orElseThrow();
  }

  public void endInput() throws IOException {
    process.getOutputStream().close();
  }

  /** Waits for the process to end, and returns its exit code. */
  public int exitCode() throws InterruptedException {
    if (!process.waitFor(LONG)) {
      throw new AssertionError("does not end; got " + lines());
    }
    for (Thread reader : readers) {
      reader.join(60_000);
    }
    return process.exitValue();
  }

  /** Kills the process, and waits for its end: until then it may still write to a test's folder. */
  @Override
  public void close() {
    var _ = process.destroyForcibly().onExit().orTimeout(LONG.toSeconds(), TimeUnit.SECONDS).join();
  }
}
