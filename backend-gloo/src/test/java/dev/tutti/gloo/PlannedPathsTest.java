package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that real groups take the paths that plans say. */
class PlannedPathsTest {
  @TempDir Path directory;

  private static final int RANKS = 4;
  private static final CallOptions CALL = CallOptions.DEFAULT;
  private static final List<OpType> TYPES =
      List.of(
          OpType.ALL_REDUCE,
          OpType.REDUCE,
          OpType.BROADCAST,
          OpType.ALL_GATHER_INTO,
          OpType.REDUCE_SCATTER_INTO,
          OpType.ALL_TO_ALL_SINGLE,
          OpType.BARRIER);
  private static final List<Long> SIZES = List.of(64L, 16_384L, 65_536L, 131_072L, 2_097_152L);

  /** Returns a started operation, of the size that the plan counts. */
  private static Work start(ProcessGroup group, OpType type, long bytes) {
    long elements = bytes / 4;
    Tensor whole = Tensor.allocate(DType.FLOAT32, elements);
    Tensor part = Tensor.allocate(DType.FLOAT32, elements / RANKS);
    return switch (type) {
      case ALL_REDUCE -> group.allReduce(whole, ReduceOp.SUM, CALL);
      case REDUCE -> group.reduce(whole, ReduceOp.SUM, 0, CALL);
      case BROADCAST -> group.broadcast(whole, 0, CALL);
      case ALL_GATHER_INTO -> group.allGatherInto(whole, part, CALL);
      case REDUCE_SCATTER_INTO -> group.reduceScatterInto(part, whole, ReduceOp.SUM, CALL);
      case ALL_TO_ALL_SINGLE ->
          group.allToAllSingle(Tensor.allocate(DType.FLOAT32, elements), whole, CALL);
      default -> group.barrier(CALL);
    };
  }

  private static void assertPaths(Settings settings, BackendProvider provider, int hosts)
      throws Exception {
    GlooWorld.run(
        RANKS,
        settings,
        provider,
        group -> {
          for (OpType type : TYPES) {
            for (long bytes : SIZES) {
              Work work = start(group, type, bytes);
              work.await();
              assertThat(work.path())
                  .as("%s of %s bytes", type.label(), bytes)
                  .isEqualTo(
                      new GlooProvider()
                          .plan(
                              new PlanRequest(type, bytes, hosts, RANKS / hosts, cores(), settings))
                          .map(OperationPlan::path));
            }
          }
          return true;
        });
  }

  private static int cores() {
    return Runtime.getRuntime().availableProcessors();
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void inSharedMemory(String sharedTensors) throws Exception {
    assertPaths(GlooWorld.settings("TUTTI_SHARED_TENSORS", sharedTensors), new GlooProvider(), 1);
  }

  @Test
  void overSockets() throws Exception {
    assertPaths(GlooWorld.settings("TUTTI_GLOO_SHARED_BYTES", "0"), new GlooProvider(), 1);
  }

  @Test
  void overSocketsWithOtherAlgorithms() throws Exception {
    assertPaths(
        GlooWorld.settings(
            "TUTTI_GLOO_SHARED_BYTES",
            "0",
            "TUTTI_X_GLOO_ALGORITHMS",
            "allReduce=ring:1K,halving-doubling;broadcast=chain:1K,binomial"),
        new GlooProvider(),
        1);
  }

  @Test
  void onTwoLevels() throws Exception {
    assertPaths(GlooWorld.settings(), new HostsProvider(directory, rank -> rank / 2), 2);
  }
}
