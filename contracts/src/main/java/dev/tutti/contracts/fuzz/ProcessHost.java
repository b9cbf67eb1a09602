package dev.tutti.contracts.fuzz;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A host that runs programs with ranks in several processes: the ranks are dealt out to the
 * processes in turn, including this one, and run there as threads.
 *
 * <p>The processes are kept for many programs. After a failure, new ones are started.
 */
final class ProcessHost implements ProgramHost, AutoCloseable {
  private static final System.Logger LOG = System.getLogger(ProcessHost.class.getName());
  private static final List<String> INHERITED_OPTIONS =
      List.of("--enable-native-access", "--enable-preview", "--add-", "--sun-misc-", "-XX:", "-Xm");
  private static final Duration SLACK = Duration.ofMinutes(1);
  private static final Duration START_UP = Duration.ofMinutes(5);

  private final ContractSubject subject;
  private final Class<?> testClass;
  private final int parts;
  private final List<Process> children = new ArrayList<>();
  private final List<Path> outputs = new ArrayList<>();
  private @Nullable TcpStoreServer server;
  private int runs;

  /**
   * Creates the host; processes are started with the first program.
   *
   * @param testClass a class with a constructor without parameters, which creates the subject in
   *     each process
   * @param processes the number of processes besides this one
   */
  ProcessHost(ContractSubject subject, Class<?> testClass, int processes) {
    this.subject = subject;
    this.testClass = testClass;
    this.parts = processes + 1;
  }

  @Override
  public Outcome run(Program program, Duration patience) throws Exception {
    TcpStoreServer meeting = server == null ? start() : server;
    String run = Integer.toString(runs++);
    String address = InetAddress.getLoopbackAddress().getHostAddress();
    try (Store store = new TcpStore(address, meeting.port())) {
      for (int part = 1; part < parts; part++) {
        String task = run + " " + patience.toMillis() + "\n" + program;
        store.queuePush(ProcessPart.TASKS + part, task.getBytes(StandardCharsets.UTF_8));
      }
      awaitStart(store);
      List<Outcome> outcomes = new ArrayList<>();
      outcomes.add(ProcessPart.run(subject, program, patience, run, 0, parts, store));
      for (int part = 1; part < parts; part++) {
        outcomes.add(outcomeOf(part, run, patience, store));
      }
      Outcome all = joined(outcomes);
      if (all.isFailure()) {
        close();
      }
      return all;
    }
  }

  /**
   * Waits until all processes have started, or one has ended: the time that they take to start does
   * not count as a standstill of the program.
   */
  private void awaitStart(Store store) {
    List<String> started =
        IntStream.range(1, parts).mapToObj(part -> ProcessPart.STARTED + part).toList();
    long end = System.nanoTime() + START_UP.toNanos();
    while (System.nanoTime() - end < 0 && children.stream().allMatch(Process::isAlive)) {
      try {
        store.await(started, Duration.ofSeconds(1));
        return;
      } catch (StoreTimeoutException e) {
        LOG.log(System.Logger.Level.DEBUG, "processes start: {0}", e.getMessage());
      }
    }
  }

  private Outcome outcomeOf(int part, String run, Duration patience, Store store)
      throws IOException {
    long end = System.nanoTime() + patience.plus(SLACK).toNanos();
    while (System.nanoTime() - end < 0 && children.get(part - 1).isAlive()) {
      try {
        return Outcome.parse(
            new String(
                store.queuePop(ProcessPart.OUTCOMES + run + "/" + part, Duration.ofSeconds(1)),
                StandardCharsets.UTF_8));
      } catch (StoreTimeoutException e) {
        LOG.log(System.Logger.Level.DEBUG, "process {0} runs on: {1}", part, e.getMessage());
      }
    }
    String how = children.get(part - 1).isAlive() ? "does not answer" : "ended";
    return new Outcome(Outcome.Ending.HUNG, "the process of part " + part + " " + how, 0, 0);
  }

  private Outcome joined(List<Outcome> outcomes) throws IOException {
    Outcome.Ending ending = Outcome.Ending.PASSED;
    StringBuilder report = new StringBuilder();
    long steps = 0;
    long elements = 0;
    for (int part = 0; part < parts; part++) {
      Outcome one = outcomes.get(part);
      steps += one.steps();
      elements += one.elements();
      if (one.isFailure()) {
        ending = ending == Outcome.Ending.HUNG ? ending : one.ending();
        report.append("process %d of %d: %s%n".formatted(part, parts, one.report()));
      }
    }
    if (ending != Outcome.Ending.PASSED) {
      for (int child = 0; child < outputs.size(); child++) {
        report.append("output of process %d:%n".formatted(child + 1));
        report.append(Files.readString(outputs.get(child)));
      }
    }
    return new Outcome(ending, report.toString(), steps, elements);
  }

  private TcpStoreServer start() throws IOException {
    TcpStoreServer started = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
    server = started;
    for (int part = 1; part < parts; part++) {
      Path output = Files.createTempFile("tutti-programs-", ".txt");
      outputs.add(output);
      children.add(
          new ProcessBuilder(command(part, started.port()))
              .redirectErrorStream(true)
              .redirectOutput(output.toFile())
              .start());
    }
    return started;
  }

  private List<String> command(int part, int port) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    for (String option : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (INHERITED_OPTIONS.stream().anyMatch(option::startsWith)) {
        command.add(option);
      }
    }
    command.addAll(List.of("-cp", ManagementFactory.getRuntimeMXBean().getClassPath()));
    command.addAll(
        List.of(
            ProcessPart.class.getName(),
            testClass.getName(),
            InetAddress.getLoopbackAddress().getHostAddress() + File.pathSeparator + port,
            Integer.toString(part),
            Integer.toString(parts)));
    return command;
  }

  /** Kills the processes; the next program starts new ones. */
  @Override
  public void close() throws IOException {
    children.forEach(Process::destroyForcibly);
    children.clear();
    for (Path output : outputs) {
      Files.deleteIfExists(output);
    }
    outputs.clear();
    if (server != null) {
      server.close();
      server = null;
    }
  }
}
