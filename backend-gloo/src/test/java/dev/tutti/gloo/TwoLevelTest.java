package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which ranks share memory in a group that spans several hosts, and what they agree on. */
@Timeout(900)
class TwoLevelTest {
  @TempDir Path directory;

  /** Runs ranks on hosts and returns how their collectives ran, each result once. */
  private List<String> layouts(
      int size,
      IntUnaryOperator hostOf,
      IntFunction<Settings> settings,
      Consumer<ProcessGroup> body)
      throws Exception {
    HostsProvider provider = new HostsProvider(directory, hostOf);
    HashStore store = new HashStore();
    // A failure in the body of one rank must not reach a rank that is still in the all-reduce.
    CyclicBarrier reduced = new CyclicBarrier(size);
    List<Float> sums =
        GlooWorld.inParallel(
            size,
            rank -> {
              GroupOptions options =
                  GlooWorld.options(store, rank, size, settings.apply(rank)).withProvider(provider);
              try (ProcessGroup group = ProcessGroup.init(options)) {
                Tensor tensor = Tensor.of(rank + 1f);
                group.allReduce(tensor);
                reduced.await(GlooWorld.TIMEOUT.toSeconds(), TimeUnit.SECONDS);
                body.accept(group);
                return tensor.toFloatArray()[0];
              }
            });
    assertThat(sums).hasSize(size).containsOnly(size * (size + 1) / 2f);
    assertThat(provider.made()).hasSize(size);
    return provider.made().stream().distinct().toList();
  }

  private static void nothing(ProcessGroup group) {
    assertThat(group.size()).isGreaterThan(1);
  }

  private static Settings with(String... namesAndValues) {
    return GlooWorld.settings(namesAndValues);
  }

  @Test
  void ranksOfAHostFindEachOther() throws Exception {
    assertThat(layouts(4, rank -> rank / 2, rank -> with(), TwoLevelTest::nothing))
        .containsExactly("two levels: [0, 1] [2, 3]");
    assertThat(layouts(5, rank -> rank % 2, rank -> with(), TwoLevelTest::nothing))
        .containsExactly("two levels: [0, 2, 4] [1, 3]");
    assertThat(layouts(3, rank -> rank == 1 ? 1 : 0, rank -> with(), TwoLevelTest::nothing))
        .containsExactly("two levels: [0, 2] [1]");
    assertThat(layouts(3, rank -> 0, rank -> with(), TwoLevelTest::nothing))
        .containsExactly("shared memory");
    assertThat(layouts(3, rank -> rank, rank -> with(), TwoLevelTest::nothing))
        .containsExactly("sockets");
  }

  @Test
  void aSettingTurnsItOff() throws Exception {
    String name = GlooProvider.TWO_LEVEL.name();
    assertThat(
            layouts(
                4,
                rank -> rank / 2,
                rank -> with(name, rank == 3 ? "false" : "true"),
                TwoLevelTest::nothing))
        .containsExactly("sockets");
    assertThat(layouts(3, rank -> 0, rank -> with(name, "false"), TwoLevelTest::nothing))
        .containsExactly("shared memory");
    assertThat(
            layouts(
                4,
                rank -> rank / 2,
                rank -> with(GlooProvider.SHARED_BYTES.name(), "0"),
                TwoLevelTest::nothing))
        .containsExactly("sockets");
  }

  @Test
  void ranksThatShareOtherBytesCountAsAnotherHost() throws Exception {
    String name = GlooProvider.SHARED_BYTES.name();
    assertThat(
            layouts(
                4, rank -> 0, rank -> with(name, rank == 1 ? "0" : "1M"), TwoLevelTest::nothing))
        .containsExactly("two levels: [0, 2, 3] [1]");
    assertThat(
            layouts(
                4,
                rank -> 0,
                rank -> with(name, rank % 2 == 1 ? "2M" : "1M"),
                TwoLevelTest::nothing))
        .containsExactly("two levels: [0, 2] [1, 3]");
  }

  @Test
  void aHostWithoutRoomUsesSockets() throws Exception {
    // Three ranks need more than two.
    String name = GlooProvider.SHARED_BYTES.name();
    assertThat(layouts(5, rank -> rank / 3, rank -> with(name, "76K"), TwoLevelTest::nothing))
        .containsExactly("two levels: [0] [1] [2] [3, 4]");
  }

  @Test
  void noFileIsLeftEvenWhileItRuns() throws Exception {
    layouts(
        4,
        rank -> rank / 2,
        rank -> with(),
        group -> {
          group.barrier();
          assertThat(files()).isEmpty();
          group.barrier();
        });
    assertThat(files()).isEmpty();
  }

  private List<Path> files() {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(Files::isRegularFile).toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Sums fractions, for which the order matters. */
  @ParameterizedTest
  @ValueSource(ints = {4, 5})
  void allRanksHoldTheSameBits(int size) throws Exception {
    List<byte[]> results = Collections.synchronizedList(new ArrayList<>());
    for (long count : new long[] {1, 2048, 2049, 16_383, 16_384, 16_385, 300_001}) {
      results.clear();
      layouts(
          size,
          rank -> rank / 2,
          rank -> with(GlooProvider.SHARED_BYTES.name(), "512K"),
          group -> {
            Random random = new Random(group.rank());
            Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
            for (long i = 0; i < count; i++) {
              tensor.setDouble(i, random.nextGaussian());
            }
            group.allReduce(tensor, ReduceOp.AVG);
            results.add(tensor.segment().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
          });
      assertThat(results).hasSize(size);
      for (byte[] result : results) {
        assertThat(result).as("%d elements", count).isEqualTo(results.get(0));
      }
    }
  }

  @Test
  void messagesGoBetweenAllPairs() throws Exception {
    layouts(
        4,
        rank -> rank / 2,
        rank -> with(),
        group -> {
          for (long count : new long[] {0, 1, 100_000}) {
            exchangeWithAll(group, count);
          }
        });
  }

  private static void exchangeWithAll(ProcessGroup group, long count) {
    int size = group.size();
    List<Work> works = new ArrayList<>();
    Tensor[] received = new Tensor[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != group.rank()) {
        received[peer] = Tensor.allocate(DType.INT32, count);
        works.add(group.recv(received[peer], peer, 0, CallOptions.ASYNC));
      }
    }
    for (int peer = 0; peer < size; peer++) {
      if (peer != group.rank()) {
        Tensor sent = Tensor.allocate(DType.INT32, count);
        sent.fill(10 * group.rank() + peer);
        works.add(group.send(sent, peer, 0, CallOptions.ASYNC));
      }
    }
    works.forEach(Work::await);
    for (int peer = 0; peer < size; peer++) {
      if (peer != group.rank() && count > 0) {
        assertThat(received[peer].getDouble(0)).isEqualTo(10 * peer + group.rank());
        assertThat(received[peer].getDouble(count - 1)).isEqualTo(10 * peer + group.rank());
      }
    }
  }

  /** Two of four ranks make a different call: either both ranks of a host or one of each host. */
  private void assertMismatch(
      String text, Consumer<ProcessGroup> first, Consumer<ProcessGroup> second) throws Exception {
    for (IntUnaryOperator side : List.<IntUnaryOperator>of(rank -> rank / 2, rank -> rank % 2)) {
      List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
      layouts(
          4,
          rank -> rank / 2,
          rank -> with(),
          group -> {
            try {
              (side.applyAsInt(group.rank()) == 0 ? first : second).accept(group);
              // A rank from which no other rank needs anything is notified of the failure only in
              // the
              // next operation.
              group.barrier();
            } catch (CollectiveException e) {
              failures.add(e);
            }
          });
      assertThat(failures).as(text).hasSize(4);
      assertThat(failures)
          .anySatisfy(
              failure ->
                  assertThat(failure)
                      .hasMessageContaining("ranks disagree")
                      .hasStackTraceContaining(text));
    }
  }

  private static Consumer<ProcessGroup> reduces(DType dtype, long count) {
    return group -> group.allReduce(Tensor.allocate(dtype, count));
  }

  private static Consumer<ProcessGroup> broadcasts(long count, int root) {
    return group -> group.broadcast(Tensor.allocate(DType.INT8, count), root);
  }

  private static Consumer<ProcessGroup> gathers(long count) {
    return group ->
        group.allGatherInto(
            Tensor.allocate(DType.INT8, count * group.size()), Tensor.allocate(DType.INT8, count));
  }

  private static Consumer<ProcessGroup> reducesTo(int root) {
    return group -> group.reduce(Tensor.of(1f), ReduceOp.SUM, root);
  }

  private static void scatter(ProcessGroup group) {
    group.reduceScatterInto(
        Tensor.allocate(DType.FLOAT32, 4), Tensor.allocate(DType.FLOAT32, 16), ReduceOp.SUM);
  }

  @Test
  void ranksThatDisagreeHearOfIt() throws Exception {
    assertMismatch("of 8 bytes", reduces(DType.FLOAT32, 1), reduces(DType.FLOAT32, 2));
    assertMismatch("of 400000 bytes", reduces(DType.FLOAT32, 1), reduces(DType.FLOAT32, 100_000));
    assertMismatch(
        "of 400000 bytes", reduces(DType.FLOAT32, 90_000), reduces(DType.FLOAT32, 100_000));
    assertMismatch("int32", reduces(DType.FLOAT32, 30_000), reduces(DType.INT32, 30_000));
    assertMismatch("barrier", reduces(DType.FLOAT32, 100_000), ProcessGroup::barrier);
    assertMismatch("with root 1", broadcasts(16, 0), broadcasts(16, 1));
    assertMismatch("with root 2", broadcasts(100_000, 1), broadcasts(100_000, 2));
    assertMismatch("allGather", broadcasts(100, 3), gathers(100));
    assertMismatch("allGather int8[7] of 7 bytes", gathers(8), gathers(7));
    assertMismatch("with root 3", reducesTo(0), reducesTo(3));
    assertMismatch("reduceScatter", TwoLevelTest::scatter, ProcessGroup::barrier);
    assertMismatch("reduceScatter", TwoLevelTest::scatter, reduces(DType.FLOAT32, 1));
  }
}
