package dev.tutti.examples;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Starts a program once per rank, as a launcher would, and returns what it prints. */
public final class Processes {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  private Processes() {}

  /**
   * Runs a program and waits for all ranks to succeed.
   *
   * @param size number of ranks
   * @param program the class with the main method
   * @param classPath the jars and folders
   * @param folder the folder for the output
   * @return the lines of all ranks, in order of rank
   */
  public static List<String> run(int size, Class<?> program, List<Path> classPath, Path folder)
      throws IOException, InterruptedException {
    return run(size, program.getName(), classPath, folder);
  }

  /**
   * Runs a program and waits for all ranks to succeed.
   *
   * @param size number of ranks
   * @param program the name of a class, or a source file
   * @param classPath the jars and folders
   * @param folder the folder for the output
   * @return the lines of all ranks, in order of rank
   */
  public static List<String> run(int size, String program, List<Path> classPath, Path folder)
      throws IOException, InterruptedException {
    List<Process> ranks = new ArrayList<>();
    List<String> lines = new ArrayList<>();
    try (TcpStoreServer store = new TcpStoreServer(0)) {
      for (int rank = 0; rank < size; rank++) {
        ranks.add(start(rank, size, store.port(), program, classPath, output(folder, rank)));
      }
      long limit = System.nanoTime() + LIMIT.toNanos();
      for (int rank = 0; rank < size; rank++) {
        Process process = ranks.get(rank);
        boolean ended = process.waitFor(limit - System.nanoTime(), TimeUnit.NANOSECONDS);
        List<String> printed = Files.readAllLines(output(folder, rank), UTF_8);
        assertThat(ended).as("rank %d ends within %s: %s", rank, LIMIT, printed).isTrue();
        assertThat(process.exitValue()).as("exit of rank %d: %s", rank, printed).isZero();
        lines.addAll(printed);
      }
    } finally {
      for (Process process : ranks) {
        process.destroyForcibly().waitFor(60, TimeUnit.SECONDS);
      }
    }
    return lines;
  }

  private static Path output(Path folder, int rank) {
    return folder.resolve("rank-" + rank + ".txt");
  }

  private static Process start(
      int rank, int size, int port, String program, List<Path> classPath, Path output)
      throws IOException {
    List<String> paths = classPath.stream().map(Path::toString).toList();
    ProcessBuilder builder =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "-Xmx128m",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                String.join(File.pathSeparator, paths),
                program)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile());
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> name.startsWith("TUTTI_"));
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(size));
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    environment.put("TORCHELASTIC_USE_AGENT_STORE", "True");
    return builder.start();
  }

  /**
   * Returns the jars and folders of a program, as a build would assemble them.
   *
   * @param types one class of each jar that the program names; their dependencies are added
   */
  public static List<Path> classPath(Class<?>... types) throws Exception {
    Set<Path> paths = new LinkedHashSet<>();
    for (Class<?> type : types) {
      paths.add(home(type));
    }
    Object runtime = ServiceLoader.load(ProcessGroupFactory.class).findFirst().orElseThrow();
    for (Class<?> type :
        List.of(ProcessGroup.class, HostReducer.class, HashStore.class, runtime.getClass())) {
      paths.add(home(type));
    }
    return List.copyOf(paths);
  }

  /** Returns the jar or folder that a class comes from. */
  public static Path home(Class<?> type) throws Exception {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }
}
