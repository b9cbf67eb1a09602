package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.contracts.Sampled;
import dev.tutti.testkit.FreeRounds;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Counts the bytes that the callers of collectives allocate. */
@Isolated("threads that contend with others allocate")
class AllocationTest {
  /** Each all-reduce takes some time slices where the ranks share few cores with other work. */
  private static final Duration LIMIT = Duration.ofSeconds(800);

  @Sampled
  @ParameterizedTest
  @CsvSource({
    "2, 4, 5000, 0",
    "2, 4096, 5000, 0",
    "2, 1048576, 300, 0",
    "4, 4096, 2000, 0",
    "2, 4, 20000, 16M",
    "2, 8192, 20000, 16M",
    "2, 1048576, 1000, 16M",
    "4, 100000, 1000, 16M"
  })
  @Timeout(900)
  void aSynchronousAllReduceAllocatesNothing(int size, long bytes, int warmUps, String shared)
      throws Exception {
    assertAllocatesNothing(
        size,
        warmUps,
        shared,
        group -> reduces(group, Tensor.allocate(Arena.ofAuto(), DType.FLOAT32, bytes / 4)));
  }

  @Sampled
  @ParameterizedTest
  @CsvSource({"2, 1048576, 1000", "4, 100000, 1000"})
  @Timeout(900)
  void anAllReduceOfMemoryThatOthersDoNotSeeAllocatesNothing(int size, long bytes, int warmUps)
      throws Exception {
    assertAllocatesNothing(
        size,
        warmUps,
        "16M",
        group ->
            reduces(
                group, Tensor.wrap(Arena.ofAuto().allocate(bytes, 64), DType.FLOAT32, bytes / 4)));
  }

  @Sampled
  @ParameterizedTest
  @CsvSource({"2, 1048576, 1000", "4, 100000, 1000"})
  @Timeout(900)
  void anAllReduceInSymmetricMemoryAllocatesNothing(int size, long bytes, int warmUps)
      throws Exception {
    assertAllocatesNothing(
        size,
        warmUps,
        "16M",
        group ->
            reduces(
                group,
                group.allocateSymmetric(bytes).buffer(group.rank(), DType.FLOAT32, 0, bytes / 4)));
  }

  @Sampled
  @ParameterizedTest
  @CsvSource({"2, 64, 5000", "4, 4096, 2000", "2, 8388608, 100"})
  @Timeout(900)
  void aSynchronousExchangeOfEqualPartsAllocatesNothing(int size, long bytes, int warmUps)
      throws Exception {
    assertAllocatesNothing(
        size,
        warmUps,
        "16M",
        group -> {
          Tensor input = Tensor.allocate(Arena.ofAuto(), DType.FLOAT32, bytes / 4);
          Tensor output = Tensor.allocate(Arena.ofAuto(), DType.FLOAT32, bytes / 4);
          return () -> group.allToAllSingle(output, input);
        });
  }

  private static Runnable reduces(ProcessGroup group, Tensor tensor) {
    return () -> group.allReduce(tensor);
  }

  private static void assertAllocatesNothing(
      int size, int warmUps, String shared, GlooWorld.Body<Runnable> prepare) throws Exception {
    FreeRounds rounds = new FreeRounds(size);
    List<Long> allocated =
        GlooWorld.run(
            size,
            GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), shared),
            new GlooProvider(),
            LIMIT,
            group -> {
              Runnable operation = prepare.run(group);
              for (int i = 0; i < warmUps; i++) {
                operation.run();
              }
              return rounds.leastBytes(
                  () -> {
                    for (int i = 0; i < 300; i++) {
                      operation.run();
                    }
                  });
            });
    assertThat(allocated).hasSize(size).containsOnly(0L);
  }
}
