package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.json.Json;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares the model with the all-reduces of docs/benchmarks.md, which were measured on H200s. */
class DeviceTablesTest {
  private static final double CLOSE = 0.2;

  /** Returns the measured times of a number of GPUs in µs by bytes, the mean of both rounds. */
  private static Map<Long, Double> measured(int gpus, String memory, String column)
      throws IOException {
    Path file = Path.of("../docs/benchmarks/gpu-allreduce-" + gpus + "xh200.jsonl");
    Map<Long, Double> means = new TreeMap<>();
    for (String line : Files.readAllLines(file)) {
      Map<?, ?> row = (Map<?, ?>) Json.read(line);
      if ("tutti".equals(row.get("peer")) && memory.equals(row.get("memory"))) {
        long bytes = ((Number) row.get("bytes")).longValue();
        double time = ((Number) row.get(column)).doubleValue();
        means.merge(bytes, time, (one, other) -> (one + other) / 2);
      }
    }
    return means;
  }

  private static void assertClose(int gpus, String memory, boolean graph) throws IOException {
    Network eager = Network.ofHosts(gpus, 64, Networks.MEMORY, Networks.SOCKET);
    Map<Long, Double> times = measured(gpus, memory, graph ? "graph_us" : "eager_us");
    assertThat(times).hasSize(gpus == 2 ? 12 : 15);
    times.forEach(
        (bytes, micros) -> {
          PlanRequest request = request(gpus, bytes);
          OperationPlan plan = Providers.backends().get("cuda").plan(request).orElseThrow();
          Network network = graph ? eager.inGraph() : eager;
          double model = CostModel.cost(request, plan, network).seconds() * 1e6;
          assertThat(model / micros)
              .as("%s %s of %s bytes by %s: %s µs", gpus, memory, bytes, plan.path(), micros)
              .isCloseTo(1, within(CLOSE));
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void replaysTakeWhatTheModelSays(int gpus) throws IOException {
    assertClose(gpus, "ordinary", true);
    assertClose(gpus, "symmetric", true);
  }

  /** In symmetric memory two calls of a few KiB took 6.1 µs of the host, and the model says 4.8. */
  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void callsTakeWhatTheModelSays(int gpus) throws IOException {
    assertClose(gpus, "ordinary", false);
  }

  private static PlanRequest request(int gpus, long bytes) {
    Settings settings = Settings.ofEnvironment(Map.of());
    return new PlanRequest(OpType.ALL_REDUCE, bytes, 1, gpus, 64, settings);
  }
}
