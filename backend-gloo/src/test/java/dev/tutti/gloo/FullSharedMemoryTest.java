package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.testkit.Tmpfs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs groups whose shared memory finds no room, or runs out of it. */
@Timeout(300)
class FullSharedMemoryTest {
  private static final int SIZE = 3;
  private static final int LARGE = 500_000;

  @TempDir Path directory;

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(Files::isRegularFile).toList();
    }
  }

  private List<String> run(GlooWorld.Body<Void> body) throws Exception {
    HostsProvider provider = new HostsProvider(directory, rank -> 0);
    GlooWorld.run(SIZE, GlooWorld.settings(), provider, body);
    return provider.made().stream().distinct().toList();
  }

  private static void assertSums(ProcessGroup group) {
    for (int count : new int[] {1, 1000, LARGE}) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
      tensor.fill(group.rank() + 1);
      group.allReduce(tensor);
      assertThat(tensor.toFloatArray()).containsOnly(SIZE * (SIZE + 1) / 2f);
    }
  }

  private static void assertMessages(ProcessGroup group) {
    Tensor received = Tensor.allocate(DType.FLOAT32, LARGE);
    Tensor sent = Tensor.allocate(DType.FLOAT32, LARGE);
    sent.fill(group.rank());
    int before = (group.rank() + SIZE - 1) % SIZE;
    Work receive = group.recv(received, before, 0, CallOptions.ASYNC);
    group.send(sent, (group.rank() + 1) % SIZE);
    receive.await();
    assertThat(received.toFloatArray()).containsOnly(before);
  }

  /** There is no room for the memory, or not even for the file names. */
  @ParameterizedTest
  @ValueSource(strings = {"size=64k", "size=1m", "size=64m,nr_inodes=3"})
  void ranksWithoutRoomUseSockets(String options) throws Exception {
    Tmpfs tmpfs = Tmpfs.mount(directory, options);
    try (tmpfs) {
      List<String> layouts =
          run(
              group -> {
                assertSums(group);
                assertMessages(group);
                return null;
              });
      assertThat(layouts).containsExactly("sockets");
      assertThat(files()).isEmpty();
    }
  }

  @Test
  void memoryThatIsThereStaysWhenAllRoomIsTaken() throws Exception {
    Tmpfs tmpfs = Tmpfs.mount(directory, "size=32m");
    try (tmpfs) {
      List<String> layouts =
          run(
              group -> {
                group.barrier();
                if (group.rank() == 0) {
                  assertThat(tmpfs.fill("filler")).isGreaterThan(8L << 20);
                }
                group.barrier();
                assertSums(group);
                assertMessages(group);
                assertThatThrownBy(() -> group.allocateSymmetric(1 << 20))
                    .isInstanceOf(BackendException.class)
                    .hasMessageContaining("rank " + group.rank())
                    .hasMessageContaining("rank 0: java.io.IOException: no room for");
                assertSums(group);
                assertThat(group.failure()).isEmpty();
                return null;
              });
      assertThat(layouts).containsExactly("shared memory");
      assertThat(files()).containsExactly(directory.resolve("filler"));
    }
  }
}
