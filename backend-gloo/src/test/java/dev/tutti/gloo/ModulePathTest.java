package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs a program that is a module, with Tutti's modules on the module path and nothing on the class
 * path.
 */
@Timeout(300)
class ModulePathTest {
  private static final int SIZE = 2;
  private static final String MODULE = "module app { requires dev.tutti; }";
  private static final String PROGRAM =
      """
      package app;

      import dev.tutti.ProcessGroup;
      import dev.tutti.Tensor;

      public class Main {
        public static void main(String[] args) {
          try (ProcessGroup group = ProcessGroup.init()) {
            Tensor tensor = Tensor.of(group.rank() + 1f);
            group.allReduce(tensor);
            System.out.println(
                group.backends()
                    + " "
                    + tensor.toFloatArray()[0]
                    + " "
                    + ProcessGroup.class.getModule()
                    + " "
                    + ModuleLayer.boot().findModule("dev.tutti.gloo").orElseThrow()
                    + " "
                    + System.getProperty("java.class.path").isEmpty());
          }
        }
      }
      """;

  @TempDir Path directory;

  private String modulePath() throws Exception {
    List<String> paths = new ArrayList<>();
    Object runtime = ServiceLoader.load(ProcessGroupFactory.class).findFirst().orElseThrow();
    for (Class<?> type :
        List.of(
            ProcessGroup.class,
            HostReducer.class,
            HashStore.class,
            runtime.getClass(),
            GlooProvider.class)) {
      paths.add(home(type).toString());
    }
    paths.add(directory.resolve("app").toString());
    return String.join(File.pathSeparator, paths);
  }

  private static Path home(Class<?> type) throws Exception {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  /** Compiles with JSpecify's annotations, as a build does; programs run without them. */
  private void compile() throws Exception {
    Path sources = Files.createDirectories(directory.resolve("src/app")).getParent();
    Files.writeString(sources.resolve("module-info.java"), MODULE);
    Files.writeString(sources.resolve("app/Main.java"), PROGRAM);
    int result =
        ToolProvider.findFirst("javac")
            .orElseThrow()
            .run(
                System.out,
                System.out,
                "--module-path",
                modulePath() + File.pathSeparator + home(NullMarked.class),
                "-d",
                directory.resolve("app").toString(),
                sources.resolve("module-info.java").toString(),
                sources.resolve("app/Main.java").toString());
    assertThat(result).isZero();
  }

  private Process start(int rank, int port, List<String> flags) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
    command.addAll(flags);
    command.addAll(List.of("--module-path", modulePath(), "--module", "app/app.Main"));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectOutput(output(rank).toFile());
    builder.redirectError(errors(rank).toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("TUTTI_"));
    builder.environment().remove("CLASSPATH");
    builder.environment().put("RANK", Integer.toString(rank));
    builder.environment().put("WORLD_SIZE", Integer.toString(SIZE));
    builder.environment().put("MASTER_ADDR", "127.0.0.1");
    builder.environment().put("MASTER_PORT", Integer.toString(port));
    builder.environment().put("TORCHELASTIC_USE_AGENT_STORE", "True");
    builder.environment().put("TUTTI_TIMEOUT", "200s");
    return builder.start();
  }

  private Path output(int rank) {
    return directory.resolve("rank" + rank + ".txt");
  }

  private Path errors(int rank) {
    return directory.resolve("rank" + rank + ".err");
  }

  @Test
  void modulesFindEachOther() throws Exception {
    assertSums("--enable-native-access=dev.tutti.cpu,dev.tutti.store,dev.tutti.gloo");
  }

  private void assertSums(String... flags) throws Exception {
    compile();
    List<Process> processes = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      for (int rank = 0; rank < SIZE; rank++) {
        processes.add(start(rank, server.port(), List.of(flags)));
      }
      for (int rank = 0; rank < SIZE; rank++) {
        assertThat(processes.get(rank).waitFor(250, TimeUnit.SECONDS)).isTrue();
        assertThat(Files.readAllLines(output(rank)))
            .as("%s", Files.readAllLines(errors(rank)))
            .containsExactly("{cpu=gloo} 3.0 module dev.tutti module dev.tutti.gloo true");
        // The JVM's own, such as that of a module without native access.
        assertThat(Files.readAllLines(errors(rank)))
            .noneMatch(line -> line.startsWith("WARNING: A "));
        assertThat(processes.get(rank).exitValue()).isZero();
      }
    } finally {
      for (Process process : processes) {
        process.destroyForcibly();
        process.waitFor(60, TimeUnit.SECONDS);
      }
    }
  }
}
