package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what happens on GPUs if ranks die or are misused, and what a thousand groups leave behind.
 */
@ExtendWith(Gpu.class)
@Isolated("counts what the process has")
class GpuFaultsTest {
  static final int RANKS = 3;
  private static final int VICTIM = 1;

  private final Cuda cuda = Cuda.get();

  /** Kills one of three processes; the others fail in time, close, and continue in a new group. */
  @ParameterizedTest
  @ValueSource(strings = {"small", "large", "barrier", "symmetric", "messages"})
  void aKilledRankFailsTheOthers(String where, @TempDir Path directory) throws Exception {
    killOne(where, RANKS, directory);
  }

  /** Starts the ranks, each a process that runs {@link GpuSurvivor}, and kills one. */
  static void killOne(String where, int size, Path directory) throws Exception {
    List<Process> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < size; r++) {
        ranks.add(start(directory, where, r, size));
      }
      for (int r = 0; r < size; r++) {
        Path out = directory.resolve("out" + r);
        Until.holds(
            "the first round of rank " + r,
            Duration.ofMinutes(3),
            () -> text(out).contains("ready\n"));
      }
      ranks.get(VICTIM).destroyForcibly();
      for (int r = 0; r < size; r++) {
        boolean ended = ranks.get(r).waitFor(3, TimeUnit.MINUTES);
        String text = text(directory.resolve("out" + r));
        assertThat(ended).as("whether rank " + r + " ends: " + text).isTrue();
        if (r != VICTIM) {
          assertThat(text).contains("\ngood\n"); // NCCL may print its version after it
          System.out.print(where + ", rank " + r + ": " + text.replaceAll("(?s).*ready\n", ""));
        }
      }
      try (Stream<Path> files = Files.list(directory)) {
        List<String> sockets = files.map(Path::toString).filter(f -> f.contains("tutti-")).toList();
        // Two sockets of the killed rank.
        assertThat(sockets).hasSizeLessThanOrEqualTo(2);
      }
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
  }

  private static Process start(Path directory, String where, int rank, int size)
      throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
            ProcessHandle.current().info().command().orElseThrow(),
            "--enable-native-access=ALL-UNNAMED",
            "-Xmx512m",
            "-cp",
            System.getProperty("java.class.path"),
            GpuSurvivor.class.getName(),
            directory.toString(),
            where,
            String.valueOf(rank),
            String.valueOf(size),
            String.valueOf(VICTIM));
    builder.redirectErrorStream(true).redirectOutput(directory.resolve("out" + rank).toFile());
    return builder.start();
  }

  private static String text(Path file) {
    try {
      return Files.readString(file, UTF_8);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aReplayThatAPeerDoesNotMakeFailsTheGroup() throws Exception {
    CallOptions soon = CallOptions.timeout(Duration.ofSeconds(1));
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              group.allReduce(tensor);
              device.currentStream().await(Duration.ofSeconds(20));
              try (CudaSession session = new CudaSession(device);
                  Recording graph =
                      session.record(() -> group.allReduce(tensor, ReduceOp.SUM, soon))) {
                // The failure would also end the recording of a rank that has not made it yet.
                group.store().barrier("recorded", 2, Until.LONG);
                if (group.rank() == 0) {
                  graph.replay();
                }
                Until.holds("the failure", () -> group.failure().isPresent());
                assertThat(group.failure().orElseThrow())
                    .hasMessageContaining("rank 0 waited for rank 1 on its device");
                device.currentStream().await(Duration.ofSeconds(20));
              }
            });
  }

  @Test
  void whatCannotBeUsedIsRefused() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("tensor is on cpu");
              Arena arena = Arena.ofShared();
              Tensor freed = device.tensors().allocate(arena, DType.FLOAT32, 8);
              arena.close();
              assertThatThrownBy(() -> group.allReduce(freed, ReduceOp.SUM))
                  .hasStackTraceContaining("the memory of float32[8] on " + device + " was freed");
              Tensor columns = device.tensors().allocate(DType.FLOAT32, 4, 3).transpose(0, 1);
              assertThatThrownBy(() -> group.allReduce(columns, ReduceOp.SUM))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("must be contiguous");
              if (cuda.deviceCount() > 1) {
                int other = (device.index() + 1) % cuda.deviceCount();
                Tensor elsewhere = cuda.device(other).tensors().allocate(DType.FLOAT32, 2);
                assertThatThrownBy(() -> group.allReduce(elsewhere, ReduceOp.SUM))
                    .hasStackTraceContaining("the group uses " + device + " on this rank");
              }
              new OperationChecks(group, device).all(7);
            });
    assertThatThrownBy(
            () ->
                new CudaRanks(cuda)
                    .onOneDevice()
                    .with("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "0")
                    .run(2, (group, device) -> {}))
        .hasStackTraceContaining("ranks 0 and 1 have the same device");
    assertThatThrownBy(
            () -> new CudaRanks(cuda).with("TMPDIR", "/proc").run(2, (group, device) -> {}))
        .hasStackTraceContaining("is its directory writable?");
  }

  @Test
  void nothingIsLeftAfterAThousandGroups(@TempDir Path directory) throws Exception {
    CudaRanks ranks = new CudaRanks(cuda).with("TMPDIR", directory.toString());
    for (int i = 0; i < CudaDevice.POOL_STREAMS; i++) {
      cycle(ranks);
    }
    GroupRemains before = GroupRemains.of(cuda, directory);
    long start = System.nanoTime();
    for (int i = 0; i < 1000; i++) {
      cycle(ranks);
    }
    double millis = (System.nanoTime() - start) / 1e9;
    GroupRemains after = GroupRemains.of(cuda, directory);
    System.out.printf(
        Locale.ROOT,
        "a group made, used and closed: %.1f ms; before %s, after %s%n",
        millis,
        before,
        after);
    after.assertNoMoreThan(before);
  }

  private static void cycle(CudaRanks ranks) throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          try (Arena arena = Arena.ofShared()) {
            Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, 2);
            group.allReduce(tensor, ReduceOp.SUM);
            if (group.rank() == 0) {
              group.send(tensor, 1);
            } else {
              group.recv(tensor, 0);
            }
          }
          try (SymmetricMemory memory = group.allocateSymmetric(1000)) {
            memory.barrier(0, Duration.ofSeconds(20));
          }
          group.barrier();
        });
  }
}
