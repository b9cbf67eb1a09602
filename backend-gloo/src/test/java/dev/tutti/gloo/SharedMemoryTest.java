package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests where shared memory comes from, and what happens if the ranks disagree about it. */
@Timeout(900)
class SharedMemoryTest {
  private static Settings shared(Path directory, String bytes) {
    return GlooWorld.settings(
        GlooProvider.SHARED_DIRECTORY.name(),
        directory.toString(),
        GlooProvider.SHARED_BYTES.name(),
        bytes);
  }

  private static void assertSums(int size, Settings settings) throws Exception {
    List<Float> sums =
        GlooWorld.run(
            size,
            settings,
            group -> {
              Tensor tensor = Tensor.of(group.rank() + 1f);
              group.allReduce(tensor);
              return tensor.toFloatArray()[0];
            });
    assertThat(sums).hasSize(size).containsOnly(size * (size + 1) / 2f);
  }

  private static String namespace() throws IOException {
    String link = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
    return link.replaceAll("[^0-9]", "");
  }

  private static List<String> files(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).toList();
    }
  }

  @Test
  void leavesNoFileEvenWhileItIsUsed(@TempDir Path directory) throws Exception {
    GlooWorld.run(
        3,
        shared(directory, "1M"),
        group -> {
          group.barrier();
          assertThat(files(directory)).isEmpty();
          group.barrier();
          return null;
        });
    assertThat(files(directory)).isEmpty();
  }

  @Test
  void removesWhatDeadProcessesLeft(@TempDir Path directory) throws Exception {
    Process dead = new ProcessBuilder("true").start();
    dead.waitFor();
    Path stale = directory.resolve("tutti-" + dead.pid() + "-" + namespace() + "-0123456789abcdef");
    Path alive =
        directory.resolve(
            "tutti-" + ProcessHandle.current().pid() + "-" + namespace() + "-0123456789abcdef");
    Path hidden = directory.resolve("tutti-" + dead.pid() + "-1-0123456789abcdef");
    Path other = directory.resolve("tutti-of-somebody-else");
    for (Path file : List.of(stale, alive, hidden, other)) {
      Files.createFile(file);
    }
    assertSums(2, shared(directory, "1M"));
    assertThat(files(directory))
        .containsExactlyInAnyOrder(
            alive.getFileName().toString(),
            hidden.getFileName().toString(),
            other.getFileName().toString());
  }

  @Test
  void doesWithoutWhereThereIsNoDirectory(@TempDir Path directory) throws Exception {
    assertSums(3, shared(directory.resolve("missing"), "1M"));
  }

  @Test
  void doesWithoutWhereThereIsTooLittle(@TempDir Path directory) throws Exception {
    assertSums(3, shared(directory, "64K"));
    assertThat(files(directory)).isEmpty();
  }

  @Test
  void doesWithoutForARankThatSharesNothingOrOtherBytes(@TempDir Path directory) throws Exception {
    assertSumsWith(rank -> shared(directory, rank == 1 ? "0" : "1M"));
    assertSumsWith(rank -> shared(directory, rank == 1 ? "2M" : "1M"));
    assertThat(files(directory)).isEmpty();
  }

  private interface SettingsOf {
    Settings rank(int rank);
  }

  private static void assertSumsWith(SettingsOf settings) throws Exception {
    HashStore store = new HashStore();
    List<Float> sums =
        GlooWorld.inParallel(
            3,
            rank -> {
              try (ProcessGroup group =
                  ProcessGroup.init(GlooWorld.options(store, rank, 3, settings.rank(rank)))) {
                Tensor tensor = Tensor.of(rank + 1f);
                group.allReduce(tensor);
                return tensor.toFloatArray()[0];
              }
            });
    assertThat(sums).containsExactly(6f, 6f, 6f);
  }

  private static void assertMismatch(
      String text, Consumer<ProcessGroup> first, Consumer<ProcessGroup> second) throws Exception {
    assertMismatch("16M", text, first, second);
    assertMismatch("0", text, first, second);
  }

  private static void assertMismatch(
      String sharedBytes, String text, Consumer<ProcessGroup> first, Consumer<ProcessGroup> second)
      throws Exception {
    List<Throwable> failures =
        GlooWorld.run(
            2,
            GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), sharedBytes),
            group -> {
              group.allReduce(Tensor.of(1f));
              try {
                (group.rank() == 0 ? first : second).accept(group);
                return new AssertionError("no failure on rank " + group.rank());
              } catch (CollectiveException e) {
                return e;
              }
            });
    assertThat(failures)
        .allSatisfy(failure -> assertThat(failure).isInstanceOf(CollectiveException.class));
    assertThat(failures)
        .anySatisfy(
            failure ->
                assertThat(failure)
                    .hasMessageContaining("ranks disagree")
                    .hasStackTraceContaining(text));
  }

  private static Consumer<ProcessGroup> reducesTo(int root) {
    return group -> group.reduce(Tensor.of(1f), ReduceOp.SUM, root);
  }

  private static Consumer<ProcessGroup> reduces(DType dtype, long count) {
    return group -> group.allReduce(Tensor.allocate(dtype, count));
  }

  @Test
  void ranksThatDisagreeHearOfIt() throws Exception {
    assertMismatch(
        "allReduce SUM float32[2] of 8 bytes",
        reduces(DType.FLOAT32, 1),
        reduces(DType.FLOAT32, 2));
    assertMismatch("int32[1] of 4 bytes", reduces(DType.FLOAT32, 1), reduces(DType.INT32, 1));
    assertMismatch("of 400000 bytes", reduces(DType.FLOAT32, 1), reduces(DType.FLOAT32, 100_000));
    assertMismatch(
        "of 400000 bytes", reduces(DType.FLOAT32, 90_000), reduces(DType.FLOAT32, 100_000));
    assertMismatch("allGather int64", gathers(DType.FLOAT32, 2), gathers(DType.INT64, 1));
    assertMismatch("barrier", reduces(DType.FLOAT32, 100_000), ProcessGroup::barrier);
    assertMismatch(
        "broadcast int8[16] of 16 bytes with root 0", broadcasts(16, 0), broadcasts(16, 1));
    assertMismatch("with root 1", broadcasts(100_000, 0), broadcasts(100_000, 1));
    assertMismatch("broadcast", broadcasts(100, 1), gathers(DType.INT8, 100));
    // Over sockets, nothing is sent for zero bytes.
    assertMismatch("16M", "broadcast int8 of 0 bytes", broadcasts(0, 0), broadcasts(16, 0));
    assertMismatch(
        "16M", "sends 8 bytes to rank 1, which expects 16", exchanges(2, 2), exchanges(4, 2));
    assertMismatch("reduce SUM float32[1] of 4 bytes", reducesTo(0), reduces(DType.FLOAT32, 1));
    assertMismatch("with root 1", reducesTo(0), reducesTo(1));
  }

  private static Consumer<ProcessGroup> gathers(DType dtype, long count) {
    return group ->
        group.allGather(
            List.of(Tensor.allocate(dtype, count), Tensor.allocate(dtype, count)),
            Tensor.allocate(dtype, count));
  }

  private static Consumer<ProcessGroup> broadcasts(long count, int root) {
    return group -> group.broadcast(Tensor.allocate(DType.INT8, count), root);
  }

  /** Exchanges with a peer from which it expects some elements and to which it sends some. */
  private static Consumer<ProcessGroup> exchanges(long expected, long sent) {
    return group -> {
      Tensor[] outputs = new Tensor[2];
      Tensor[] inputs = new Tensor[2];
      for (int peer = 0; peer < 2; peer++) {
        boolean own = peer == group.rank();
        outputs[peer] = Tensor.allocate(DType.FLOAT32, own ? 1 : expected);
        inputs[peer] = Tensor.allocate(DType.FLOAT32, own ? 1 : sent);
      }
      group.allToAll(List.of(outputs), List.of(inputs));
    };
  }
}
