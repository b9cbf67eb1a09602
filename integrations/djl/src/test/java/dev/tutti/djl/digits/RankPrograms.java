package dev.tutti.djl.digits;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.tcp.TcpStoreServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The processes of a program that runs once per rank; those that remain are killed at the end. */
final class RankPrograms implements AutoCloseable {
  private final TcpStoreServer store = new TcpStoreServer(0);
  private final List<Process> ranks = new ArrayList<>();
  private final Path folder;
  private final int size;

  RankPrograms(Path folder, int size) throws IOException {
    this.folder = folder;
    this.size = size;
  }

  /** Starts the next rank. */
  void start(Class<?> program, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    for (String option : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (option.startsWith("-D") || option.startsWith("--")) {
        command.add(option);
      }
    }
    command.addAll(
        List.of(
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-cp",
            ManagementFactory.getRuntimeMXBean().getClassPath(),
            program.getName()));
    command.addAll(List.of(arguments));
    int rank = ranks.size();
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("output" + rank).toFile());
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> name.startsWith("TUTTI_"));
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(size));
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(store.port()));
    environment.put("TORCHELASTIC_USE_AGENT_STORE", "True");
    environment.put("OMP_NUM_THREADS", "1");
    ranks.add(builder.start());
  }

  /** Waits for a rank and returns its exit code. */
  int await(int rank, long seconds) throws IOException, InterruptedException {
    assertThat(ranks.get(rank).waitFor(seconds, TimeUnit.SECONDS))
        .as("rank %d ends within %d s: %s", rank, seconds, output(rank))
        .isTrue();
    return ranks.get(rank).exitValue();
  }

  String output(int rank) throws IOException {
    return Files.readString(folder.resolve("output" + rank), UTF_8);
  }

  @Override
  public void close() {
    for (Process rank : ranks) {
      rank.destroyForcibly().onExit().orTimeout(60, TimeUnit.SECONDS).join();
    }
    store.close();
  }
}
