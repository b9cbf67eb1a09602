package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class LibtorchBenchTest {
  private static final Path CACHE = LibtorchClasspath.defaultCacheDirectory();

  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void loadsLibtorch() {
    assumeTrue(
        LibtorchClasspath.unsupportedReason().isEmpty(),
        () -> LibtorchClasspath.unsupportedReason().orElseThrow());
    PeerProcess.prepare();
  }

  @Test
  void theCollectiveBenchmarkPrintsARowPerSizeAndChecksIt()
      throws IOException, InterruptedException {
    String[] options = {
      "--spawn",
      "2",
      "--ops",
      "allreduce,broadcast,reduce,allgather,barrier",
      "--sizes",
      "4,65536",
      "--target-ms",
      "1"
    };
    List<String> rows = run(LibtorchBench.class, options);
    assertThat(rows).hasSize(9);
    assertThat(rows)
        .allSatisfy(row -> assertThat(row).contains("\"ranks\":2,").endsWith("\"wrong\":0}"));
    assertThat(rows.get(1))
        .contains("\"op\":\"allreduce\"", "\"bytes\":65536,\"count\":16384,\"dtype\":\"float32\"");
    assertThat(rows).allSatisfy(row -> assertThat(number(row, "time_us_p50")).isPositive());
    assertThat(number(rows.get(1), "calls")).isGreaterThanOrEqualTo(200);
  }

  @Test
  void theStoreBenchmarkMeasuresEveryOperation() throws IOException, InterruptedException {
    Process server =
        new ProcessBuilder(
                LibtorchClasspath.command(LibtorchStoreBench.class, CACHE, List.of("server")))
            .start();
    try (BufferedReader out =
        new BufferedReader(new InputStreamReader(server.getInputStream(), UTF_8))) {
      String port = out.readLine().substring("PORT ".length());
      List<String> rows =
          run(
              LibtorchStoreBench.class,
              "client",
              "--port",
              port,
              "--clients",
              "1,3",
              "--duration-ms",
              "50");
      assertThat(rows).hasSize(10);
      assertThat(rows).allSatisfy(row -> assertThat(number(row, "ops_per_s")).isPositive());
      assertThat(rows.get(7)).contains("\"op\":\"add\"", "\"clients\":3,\"bytes\":8");
      server.getOutputStream().close();
      assertThat(server.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(server.exitValue()).isZero();
    } finally {
      server.destroyForcibly();
    }
  }

  private static List<String> run(Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(LibtorchClasspath.command(main, CACHE, List.of(arguments)))
            .redirectErrorStream(true)
            .start();
    try (BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      List<String> lines = out.lines().toList();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as(() -> String.join("\n", lines)).isZero();
      return lines.stream().filter(line -> line.startsWith("{")).toList();
    } finally {
      Stream.concat(process.descendants(), Stream.of(process.toHandle()))
          .forEach(ProcessHandle::destroyForcibly);
    }
  }

  private static double number(String row, String key) {
    Matcher matcher = Pattern.compile("\"" + key + "\":([0-9.]+)").matcher(row);
    assertThat(matcher.find()).as(row).isTrue();
    return Double.parseDouble(matcher.group(1));
  }
}
