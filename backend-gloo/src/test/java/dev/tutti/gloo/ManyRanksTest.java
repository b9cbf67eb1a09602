package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.assertj.core.data.Index;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Counts the resources that many ranks on one host need; here they are threads of one JVM. */
@Isolated("counts the sockets and the memory of the process")
@Timeout(900)
class ManyRanksTest {
  /** Descriptors that the JDK may open in addition. */
  private static final int SPARE = 4;

  private static final long SECONDS = GlooWorld.TIMEOUT.toSeconds();

  private static final String SHARED = GlooProvider.SHARED_BYTES.name();

  private static final int ATTEMPTS = 5;

  /**
   * What the ranks of a group have open after the rendezvous, and after a few collectives.
   *
   * @param nanos how long the collectives took
   */
  private record Need(long sockets, long socketsAtLast, long mapped, long nanos) {
    /**
     * Returns whether a rank may have waited so long for another one that it connected with it, to
     * check whether it is still there.
     */
    boolean mayHaveWatched() {
      return nanos > TimeUnit.SECONDS.toNanos(1);
    }
  }

  /**
   * Runs a body on ranks, and counts what they have open.
   *
   * @param most how many sockets there are at last, once those that are being closed have gone
   */
  private static Need measure(int size, String shared, long most, GlooWorld.Body<Void> body)
      throws Exception {
    long before = sockets();
    CyclicBarrier together = new CyclicBarrier(size);
    AtomicLong sockets = new AtomicLong();
    AtomicLong longest = new AtomicLong();
    List<Need> needs =
        GlooWorld.run(
            size,
            GlooWorld.settings(SHARED, shared),
            group -> {
              if (together.await(SECONDS, TimeUnit.SECONDS) == 0) {
                sockets.set(sockets() - before);
              }
              together.await(SECONDS, TimeUnit.SECONDS);
              long start = System.nanoTime();
              body.run(group);
              longest.accumulateAndGet(System.nanoTime() - start, Math::max);
              together.await(SECONDS, TimeUnit.SECONDS);
              Need need = new Need(sockets.get(), settled(before, most), mapped(), longest.get());
              together.await(SECONDS, TimeUnit.SECONDS);
              return need;
            });
    return needs.get(0);
  }

  private static Void collectives(ProcessGroup group) {
    int size = group.size();
    for (long count : new long[] {1, 30_000, 300_000}) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
      tensor.fill(1);
      group.allReduce(tensor);
      assertThat(tensor.getDouble(count - 1)).isEqualTo(size);
      tensor.fill(group.rank());
      group.broadcast(tensor, 1);
      assertThat(tensor.getDouble(count - 1)).isEqualTo(1);
    }
    Tensor parts = Tensor.allocate(DType.INT32, size);
    group.allGatherInto(parts, Tensor.of(group.rank()));
    assertThat(parts.getDouble(size - 1)).isEqualTo(size - 1);
    group.barrier();
    return null;
  }

  /**
   * Returns how many sockets there are besides earlier ones. A closed one disappears only when its
   * rank polls its selector again, so those that are too many get time for that.
   */
  private static long settled(long before, long most) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    long count = sockets() - before;
    while (count > most && System.nanoTime() - deadline < 0) {
      LockSupport.parkNanos(10_000_000);
      count = sockets() - before;
    }
    return count;
  }

  private static long sockets() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.filter(ManyRanksTest::isSocket).count();
    }
  }

  private static boolean isSocket(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().startsWith("socket:");
    } catch (IOException e) {
      return false;
    }
  }

  private static long mapped() throws IOException {
    long bytes = 0;
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      if (line.contains("/tutti-")) {
        String[] range = line.split(" ", 2)[0].split("-", 2);
        bytes += Long.parseLong(range[1], 16) - Long.parseLong(range[0], 16);
      }
    }
    return bytes;
  }

  /**
   * A connection counts as two sockets here; each rank keeps listening if not all are connected.
   */
  @ParameterizedTest
  @CsvSource({
    "8, 7, 0, 0", "16, 7, 1, 0", "32, 9, 1, 0", "64, 11, 1, 0",
    "8, 7, 0, 16M", "16, 7, 1, 16M", "32, 9, 1, 16M", "64, 11, 1, 16M"
  })
  void connectionsGrowWithTheRanksAndTheirLogarithm(
      int size, int connected, int listening, String shared) throws Exception {
    long expected = (long) size * (connected + listening);
    long most = expected + SPARE;
    Need need = measure(size, shared, most, ManyRanksTest::collectives);
    for (int i = 1; i < ATTEMPTS && need.socketsAtLast() > most && need.mayHaveWatched(); i++) {
      need = measure(size, shared, most, ManyRanksTest::collectives);
    }
    // A closed listener disappears only when its selector has been polled again.
    assertThat(need.sockets()).isBetween(expected, expected + size + SPARE);
    assertThat(need.socketsAtLast()).isBetween(expected, most);
    assertThat(need.mapped()).isLessThanOrEqualTo(size * (shared.equals("0") ? 0 : 17L << 20));
  }

  /** Each rank has data for every other one, so all connect. */
  @ParameterizedTest
  @ValueSource(strings = {"0", "16M"})
  void ranksConnectWhenTheyNeedIt(String shared) throws Exception {
    int size = 12;
    long expected = (long) size * size;
    Need need = measure(size, shared, expected + SPARE, ManyRanksTest::exchange);
    assertThat(need.sockets()).isBetween(size * 7L, size * 7L + SPARE);
    assertThat(need.socketsAtLast()).isBetween(expected, expected + SPARE);
  }

  private static Void exchange(ProcessGroup group) {
    int size = group.size();
    int rank = group.rank();
    for (long count : new long[] {1, 50_000}) {
      List<Work> works = new ArrayList<>();
      Tensor[] received = new Tensor[size];
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          received[peer] = Tensor.allocate(DType.INT32, count);
          Tensor sent = Tensor.allocate(DType.INT32, count);
          sent.fill(100 * rank + peer);
          works.add(group.send(sent, peer, 0, CallOptions.ASYNC));
          works.add(group.recv(received[peer], peer, 0, CallOptions.ASYNC));
        }
      }
      works.forEach(Work::await);
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          assertThat(received[peer].getDouble(count - 1)).isEqualTo(100 * peer + rank);
        }
      }
    }
    return null;
  }

  /** Of any two ranks, one has to connect; each rank is once the first to need the connection. */
  @ParameterizedTest
  @CsvSource({"0, true, 0", "0, false, 0", "3, true, 16M", "3, false, 16M"})
  void eitherRankMayBeTheFirstToNeedAConnection(int sender, boolean receiverFirst, String shared)
      throws Exception {
    int receiver = (sender + 6) % 12;
    CountDownLatch begun = new CountDownLatch(1);
    GlooWorld.run(
        12,
        GlooWorld.settings(SHARED, shared),
        group -> {
          Tensor tensor = Tensor.of(group.rank());
          boolean sends = group.rank() == sender;
          if (sends || group.rank() == receiver) {
            if (sends == receiverFirst) {
              assertThat(begun.await(SECONDS, TimeUnit.SECONDS)).isTrue();
            }
            Work work =
                sends
                    ? group.send(tensor, receiver, 0, CallOptions.ASYNC)
                    : group.recv(tensor, sender, 0, CallOptions.ASYNC);
            begun.countDown();
            work.await();
          }
          group.barrier();
          if (group.rank() == receiver) {
            assertThat(tensor.getDouble(0)).isEqualTo(sender);
          }
          return null;
        });
  }

  @Test
  void aMessageFromAnyRankConnectsItsSender() throws Exception {
    List<Integer> sources =
        GlooWorld.run(
            12,
            group -> {
              Tensor tensor = Tensor.of(group.rank());
              int source = -1;
              if (group.rank() == 1) {
                source = group.recvAnySource(tensor);
                assertThat(tensor.getDouble(0)).isEqualTo(7);
              } else if (group.rank() == 7) {
                group.send(tensor, 1);
              }
              group.monitoredBarrier(GlooWorld.TIMEOUT, MissingRanks.ALL);
              return source;
            });
    assertThat(sources.get(1)).isEqualTo(7);
  }

  private static void leave(ProcessGroup group) {
    group.close();
  }

  /** The two ranks have never had a connection. */
  @ParameterizedTest
  @ValueSource(strings = {"0", "16M"})
  void aRankThatLeftIsMissedByOneThatIsNotConnected(String shared) throws Exception {
    CountDownLatch met = new CountDownLatch(12);
    CountDownLatch left = new CountDownLatch(1);
    HashStore store = new HashStore();
    List<String> failures =
        GlooWorld.inParallel(
            12,
            rank -> {
              GroupOptions options =
                  GlooWorld.options(store, rank, 12, GlooWorld.settings(SHARED, shared));
              try (ProcessGroup group = ProcessGroup.init(options)) {
                group.barrier();
                met.countDown();
                if (rank == 6) {
                  // A rank that is still in the barrier would see the group of rank 0 fail.
                  assertThat(met.await(SECONDS, TimeUnit.SECONDS)).isTrue();
                  leave(group);
                  left.countDown();
                  return "";
                }
                assertThat(left.await(SECONDS, TimeUnit.SECONDS)).isTrue();
                if (rank == 0) {
                  assertThatThrownBy(() -> group.recv(Tensor.of(1), 6))
                      .isInstanceOf(CollectiveException.class)
                      .hasMessageContaining("rank 6");
                  return "rank 6";
                }
                return "";
              }
            });
    assertThat(failures).contains("rank 6", Index.atIndex(0));
  }
}
