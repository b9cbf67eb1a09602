package dev.tutti.examples.hello;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.examples.Processes;
import dev.tutti.gloo.GlooProvider;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Starts ranks with third-party launchers, each of which gives a rank its number in its own way.
 */
@Tag("full")
@Timeout(400)
class LaunchersTest {
  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void openMpi(int size) throws Exception {
    Path launcher = installed("mpirun.openmpi");
    assertThat(
            run(
                List.of(
                    launcher.toString(),
                    "--allow-run-as-root",
                    "--oversubscribe",
                    "-np",
                    Integer.toString(size)),
                HelloProcesses.class.getName()))
        .containsExactlyElementsOf(greetings(size));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void hydra(int size) throws Exception {
    Path launcher = installed("mpiexec.hydra");
    assertThat(
            run(
                List.of(launcher.toString(), "-n", Integer.toString(size)),
                HelloProcesses.class.getName()))
        .containsExactlyElementsOf(greetings(size));
  }

  /**
   * On a single host this runs a cluster of its own in a network namespace, which requires root.
   */
  @ParameterizedTest
  @ValueSource(strings = {"none", "pmi2"})
  void slurm(String mpi) throws Exception {
    assumeThat(System.getProperty("user.name")).as("who may make a namespace").isEqualTo("root");
    installed("slurmctld");
    installed("slurmd");
    installed("munged");
    installed("unshare");
    Path cluster = folder.resolve("slurm-host");
    try (var script = LaunchersTest.class.getResourceAsStream("/dev/tutti/examples/slurm-host")) {
      Files.copy(script, cluster);
    }
    assertThat(
            run(
                List.of(
                    "unshare",
                    "--net",
                    "bash",
                    cluster.toString(),
                    folder.toString(),
                    "srun",
                    "--mpi=" + mpi,
                    "--overcommit",
                    "--ntasks=3"),
                HelloProcesses.class.getName()))
        .containsExactlyElementsOf(greetings(3));
  }

  @Test
  void saysWhatIsWrongWithTwoLaunchers() throws Exception {
    Path launcher = installed("mpiexec.hydra");
    List<String> lines =
        run(
            List.of(
                launcher.toString(),
                "-n",
                "2",
                "-env",
                "OMPI_COMM_WORLD_RANK",
                "0",
                "-env",
                "OMPI_COMM_WORLD_SIZE",
                "1"),
            HelloProcesses.class.getName());
    assertThat(lines)
        .anyMatch(
            line ->
                line.contains(
                    "Open MPI and PMI disagree on which rank this is: OMPI_COMM_WORLD_RANK=0,"
                        + " OMPI_COMM_WORLD_SIZE=1 against PMI_RANK="));
  }

  private static List<String> greetings(int size) {
    int sum = size * (size - 1) / 2;
    return IntStream.range(0, size)
        .mapToObj(
            rank ->
                "rank %d of %d on gloo: the rank numbers add up to %d".formatted(rank, size, sum))
        .toList();
  }

  private static Path installed(String program) {
    Path found =
        Stream.of("/usr/bin", "/usr/sbin", "/usr/local/bin")
            .map(place -> Path.of(place, program))
            .filter(Files::isExecutable)
            .findFirst()
            .orElse(Path.of(""));
    assumeThat(found.toString()).as("%s, which is not installed", program).isNotEmpty();
    return found;
  }

  /** Runs a program with a launcher, and returns the lines of all ranks, sorted. */
  private List<String> run(List<String> launcher, String program) throws Exception {
    List<String> command = new ArrayList<>(launcher);
    List<Path> classPath = Processes.classPath(HelloProcesses.class, GlooProvider.class);
    command.addAll(
        List.of(
            ProcessHandle.current().info().command().orElseThrow(),
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-XX:+UseSerialGC",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            String.join(File.pathSeparator, classPath.stream().map(Path::toString).toList()),
            program));
    Path output = folder.resolve("output.txt");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> name.startsWith("TUTTI_"));
    Process process = builder.start();
    try {
      boolean isOver = process.waitFor(280, TimeUnit.SECONDS);
      String printed = Files.readString(output, UTF_8);
      assertThat(isOver).as("%s ends: %s", launcher, printed).isTrue();
      return printed.lines().filter(line -> line.contains("rank")).sorted().toList();
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly().waitFor(60, TimeUnit.SECONDS);
    }
  }
}
