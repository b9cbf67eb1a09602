package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.Backend;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Isolated("threads of other tests in shared locks would bring in real time")
class ThreadedFailureTest {
  private static final ThreadedProvider PROVIDER = new ThreadedProvider();

  private static Tensor floats(long count) {
    return Tensor.allocate(DType.FLOAT32, count);
  }

  private static void assertMismatch(int size, RawWorld.Action body, String... parts)
      throws Exception {
    List<Throwable> failures = RawWorld.simulated(size, PROVIDER, body);
    assertThat(failures)
        .hasSize(size)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(PeerMismatchException.class)
                    .hasMessageContainingAll(parts));
  }

  @Simulated
  void differentOperationsAreReported() throws Exception {
    assertMismatch(
        3,
        rank -> {
          if (rank.rank == 1) {
            rank.backend.broadcast(rank.op(OpType.BROADCAST), floats(4), 2);
          } else {
            rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), floats(4), ReduceOp.SUM);
          }
        },
        "the ranks of group test disagree: ",
        "ranks 0, 2: allReduce #1 SUM float32[4]",
        "rank 1: broadcast #1 float32[4] root 2");
  }

  @Simulated
  void differentArgumentsAreReported() throws Exception {
    assertMismatch(
        2,
        rank ->
            rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), floats(4 + rank.rank), ReduceOp.SUM),
        "rank 0: allReduce #1 SUM float32[4]",
        "rank 1: allReduce #1 SUM float32[5]");
    assertMismatch(
        2,
        rank ->
            rank.backend.allReduce(
                rank.op(OpType.ALL_REDUCE),
                Tensor.allocate(rank.rank == 0 ? DType.INT32 : DType.FLOAT32, 1),
                ReduceOp.SUM),
        "rank 0: allReduce #1 SUM int32[1]",
        "rank 1: allReduce #1 SUM float32[1]");
    assertMismatch(
        2,
        rank ->
            rank.backend.allReduce(
                rank.op(OpType.ALL_REDUCE),
                floats(1),
                rank.rank == 0 ? ReduceOp.MIN : ReduceOp.MAX),
        "rank 0: allReduce #1 MIN float32[1]",
        "rank 1: allReduce #1 MAX float32[1]");
    assertMismatch(
        2,
        rank -> rank.backend.broadcast(rank.op(OpType.BROADCAST), floats(1), rank.rank),
        "rank 0: broadcast #1 float32[1] root 0",
        "rank 1: broadcast #1 float32[1] root 1");
  }

  @Simulated
  void partsThatDoNotFitAreReported() throws Exception {
    assertMismatch(
        2,
        rank -> {
          List<Tensor> outputs = List.of(floats(1), floats(rank.rank == 0 ? 3 : 2));
          rank.backend.allGather(
              rank.op(OpType.ALL_GATHER), outputs, floats(rank.rank == 0 ? 1 : 2));
        },
        "rank 0 expects float32[3] on cpu from rank 1, which gives float32[2] on cpu",
        "rank 1: allGather #1 float32[2] -> [float32[1], float32[2]]");
    assertMismatch(
        2,
        rank -> {
          long[] splits = rank.rank == 0 ? new long[] {1, 2} : new long[] {1, 1};
          rank.backend.allToAllSingle(
              rank.op(OpType.ALL_TO_ALL_SINGLE),
              floats(splits[0] + splits[1]),
              floats(splits[0] + splits[1]),
              splits,
              splits);
        },
        "rank 0 expects float32[2] on cpu from rank 1, which gives float32[1] on cpu");
    assertMismatch(
        2,
        rank ->
            rank.backend.scatter(
                rank.op(OpType.SCATTER),
                floats(2),
                rank.rank == 0 ? List.of(floats(2), floats(1)) : List.of(),
                0),
        "rank 1 expects float32[2] on cpu from rank 0, which gives float32[1] on cpu");
  }

  /** Waits for a message that rank 0 does not send. */
  private static void receiveInVain(RawWorld.Rank rank) throws Exception {
    TestOperation op = rank.op(OpType.RECV);
    rank.backend.recv(op, floats(1), 0, 0);
    op.result();
  }

  /** The other ranks disagree with rank 0, and rank 3 never joins. */
  @Simulated
  void aMismatchIsReportedWithoutTheMissing() throws Exception {
    List<Throwable> failures =
        RawWorld.simulated(
            4,
            PROVIDER,
            rank -> {
              if (rank.rank == 0) {
                rank.backend.barrier(rank.op(OpType.BARRIER));
              } else if (rank.rank < 3) {
                rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), floats(1), ReduceOp.SUM);
              } else {
                receiveInVain(rank);
              }
            });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(PeerMismatchException.class)
                    .hasMessageContainingAll(
                        "rank 0: barrier #1",
                        "ranks 1, 2: allReduce #1 SUM float32[1]",
                        "rank 3: nothing yet"));
    assertThat(Simulation.now()).isEqualTo(Duration.ofMillis(500).plusNanos(1));
  }

  @Simulated
  void aTimeoutNamesTheMissingRanks() throws Exception {
    List<Throwable> failures =
        RawWorld.simulated(
            4,
            PROVIDER,
            rank -> {
              if (rank.rank == 0) {
                SimulatedWorld.sleep(Duration.ofSeconds(1));
                TestOperation op = rank.op(OpType.MONITORED_BARRIER, Duration.ofMillis(100));
                rank.backend.monitoredBarrier(op, true);
              } else if (rank.rank == 2) {
                rank.backend.monitoredBarrier(rank.op(OpType.MONITORED_BARRIER), true);
              } else {
                receiveInVain(rank);
              }
            });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(TimeoutException.class)
                    .hasMessage(
                        "ranks 1, 3 did not arrive before the deadline of rank 0, which called"
                            + " monitoredBarrier #1"));
  }

  @Simulated
  void abortEndsTheRanksOwnWaitWithItsCauseAndTellsThePeers() throws Exception {
    ConcurrentHashMap<Integer, ConcurrentHashMap<Integer, Throwable>> heard =
        new ConcurrentHashMap<>();
    IllegalStateException cause = new IllegalStateException("had enough");
    List<Throwable> failures =
        RawWorld.simulated(
            3,
            PROVIDER,
            rank -> {
              heard.put(rank.rank, rank.heard);
              if (rank.rank == 0) {
                Thread _ =
                    Simulation.start(
                        "aborter",
                        () -> {
                          SimulatedWorld.sleep(Duration.ofSeconds(1));
                          rank.backend.abort(cause);
                        });
                rank.backend.barrier(rank.op(OpType.BARRIER));
              } else if (rank.rank == 1) {
                rank.backend.barrier(rank.op(OpType.BARRIER));
              } else {
                TestOperation op = rank.op(OpType.RECV);
                rank.backend.recv(op, floats(1), 1, 0);
                op.result();
              }
            });
    assertThat(failures.get(0)).isSameAs(cause);
    for (int peer = 1; peer < 3; peer++) {
      assertThat(failures.get(peer))
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 0 gave up: java.lang.IllegalStateException: had enough")
          .extracting(failure -> ((PeerLostException) failure).peer())
          .isEqualTo(0);
      assertThat(heard.get(peer)).containsOnlyKeys(0);
    }
    assertThat(heard.get(0)).isEmpty();
  }

  @Simulated
  void aRankThatClosesIsNamedToWhoWaitsForIt() throws Exception {
    List<Throwable> failures =
        RawWorld.simulated(
            3,
            PROVIDER,
            rank -> {
              rank.backend.barrier(rank.op(OpType.BARRIER));
              if (rank.rank != 1) {
                rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), floats(1), ReduceOp.SUM);
              }
            });
    assertThat(failures.get(1)).isNull();
    for (int peer : new int[] {0, 2}) {
      // A rank that arrives after the first one failed may see that rank's exit instead.
      assertThat(failures.get(peer))
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("closed group test");
    }
  }

  @Simulated
  void anInterruptEndsNoCollective() throws Exception {
    CountDownLatch timedOut = new CountDownLatch(1);
    List<Throwable> failures =
        RawWorld.simulated(
            2,
            PROVIDER,
            rank -> {
              if (rank.rank == 0) {
                Thread.currentThread().interrupt();
                assertThatThrownBy(
                        () -> rank.backend.barrier(rank.op(OpType.BARRIER, Duration.ofMillis(50))))
                    .isInstanceOf(TimeoutException.class);
                assertThat(Thread.interrupted()).isTrue();
                timedOut.countDown();
              } else {
                timedOut.await();
              }
              throw new IllegalStateException("the end of rank " + rank.rank);
            });
    assertThat(failures).hasSize(2).allMatch(e -> e instanceof IllegalStateException);
  }

  @Simulated
  void failureEndsAllLaterCalls() throws Exception {
    List<Throwable> failures =
        RawWorld.simulated(
            2,
            PROVIDER,
            rank -> {
              TestOperation op = rank.op(OpType.BARRIER, Duration.ofMillis(50));
              if (rank.rank == 0) {
                assertThatThrownBy(() -> rank.backend.barrier(op))
                    .isInstanceOf(TimeoutException.class);
              } else {
                TestOperation received = rank.op(OpType.RECV);
                rank.backend.recv(received, floats(1), 0, 0);
                assertThatThrownBy(received::result).isInstanceOf(TimeoutException.class);
              }
              rank.backend.barrier(rank.op(OpType.BARRIER));
            });
    assertThat(failures)
        .allSatisfy(failure -> assertThat(failure).isInstanceOf(TimeoutException.class));
  }

  /** The second element count makes each rank move its own part. */
  @ParameterizedTest
  @ValueSource(longs = {4, 300_000})
  void memoryThatIsFreedMeanwhileFailsAllRanks(long count) {
    List<Throwable> failures =
        RawWorld.failures(
            3,
            PROVIDER,
            rank -> {
              Arena arena = Arena.ofShared();
              Tensor tensor = Tensor.allocate(arena, DType.FLOAT32, count);
              if (rank.rank == 1) {
                arena.close();
              }
              rank.backend.allReduce(rank.op(OpType.ALL_REDUCE), tensor, ReduceOp.SUM);
            });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOfSatisfying(
                        PeerLostException.class, lost -> assertThat(lost.peer()).isEqualTo(1))
                    .hasMessageContaining(
                        "the data of rank 1 could not be moved: java.lang.IllegalStateException:"
                            + " Already closed; ranks 0, 1, 2: allReduce #1 SUM")
                    .hasRootCauseMessage("Already closed"));
  }

  /** The second element count makes each rank move its own part. */
  @ParameterizedTest
  @CsvSource({"0, 4", "1, 4", "0, 300000", "1, 300000"})
  void theRankWhoseMemoryIsFreedIsBlamedOnAllRanks(int culprit, long count) {
    Worlds.run(2, group -> checkBlameOfFreed(group, culprit, count));
  }

  private static void checkBlameOfFreed(ProcessGroup group, int culprit, long count) {
    Work work;
    if (group.rank() == culprit) {
      Arena arena = Arena.ofShared();
      Tensor tensor = Tensor.allocate(arena, DType.FLOAT32, count);
      work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
      arena.close();
      group.store().set("freed", "1");
    } else {
      group.store().await(List.of("freed"));
      work = group.allReduce(floats(count), ReduceOp.SUM, CallOptions.ASYNC);
    }
    assertThatThrownBy(work::await)
        .isInstanceOfSatisfying(
            CollectiveException.class,
            failure -> assertThat(failure.failedRank()).as("%s", failure).hasValue(culprit))
        .hasMessageContaining("Already closed");
  }

  private static Backend create(int rank, int size, HashStore store, Duration timeout)
      throws Exception {
    return PROVIDER.create(RawWorld.context(rank, size, store, timeout, new ConcurrentHashMap<>()));
  }

  @Test
  void setUpNamesTheRanksThatDoNotCome() throws Exception {
    try (HashStore store = new HashStore()) {
      assertThatThrownBy(() -> create(0, 3, store, Duration.ofMillis(100)))
          .isInstanceOf(TimeoutException.class)
          .hasMessage("ranks 1, 2 did not join threaded group test within 100 ms");
      // Rank 0 closed the world, so rank 1 is notified of that.
      assertThatThrownBy(() -> create(1, 3, store, Duration.ofSeconds(5)))
          .isInstanceOf(PeerLostException.class)
          .hasMessage("rank 0 has given up joining threaded group test");
    }
  }

  @Test
  void ranksOfSeveralProcessesAreRefused() throws Exception {
    try (HashStore store = new HashStore()) {
      store.set(Hub.KEY, "an id of another process");
      assertThatThrownBy(() -> create(1, 3, store, Duration.ofSeconds(5)))
          .isInstanceOf(BackendException.class)
          .hasMessage(
              "rank 1 of group test cannot find rank 0 in this JVM: the ranks of backend threaded"
                  + " must be threads of one JVM");
    }
  }

  @Test
  void oneStoreServesGroupsOneAfterTheOther() throws Exception {
    try (HashStore store = new HashStore()) {
      for (int round = 0; round < 5; round++) {
        List<Thread> threads = new ArrayList<>();
        ConcurrentHashMap<Integer, Double> sums = new ConcurrentHashMap<>();
        for (int rank = 0; rank < 3; rank++) {
          int self = rank;
          threads.add(
              Thread.ofPlatform()
                  .start(
                      () -> {
                        try (var backend =
                            PROVIDER.create(
                                RawWorld.context(
                                    self, 3, store, RawWorld.TIMEOUT, new ConcurrentHashMap<>()))) {
                          Tensor tensor = Tensor.of(1f);
                          CallByName.of(backend)
                              .allReduce(
                                  new TestOperation(OpType.ALL_REDUCE, 1, RawWorld.TIMEOUT),
                                  tensor,
                                  ReduceOp.SUM);
                          sums.put(self, tensor.getDouble(0));
                        } catch (Exception e) {
                          throw new AssertionError(e);
                        }
                      }));
        }
        for (Thread thread : threads) {
          thread.join();
        }
        assertThat(sums).isEqualTo(Map.of(0, 3.0, 1, 3.0, 2, 3.0));
      }
    }
  }

  @Test
  void setUpThatRankZeroMissesNamesIt() throws Exception {
    try (HashStore store = new HashStore()) {
      assertThatThrownBy(() -> create(1, 2, store, Duration.ofMillis(100)))
          .isInstanceOf(TimeoutException.class)
          .hasMessage("rank 0 did not join threaded group test within 100 ms");
    }
  }

  @Test
  void setUpEndsOnAllRanksWhereTheStoreOfOneIsClosed() throws Exception {
    try (HashStore store = new HashStore()) {
      PrefixStore own = new PrefixStore("group", store);
      CompletableFuture<Throwable> host = creation(0, own);
      // A rank that has also joined is notified through the group.
      CompletableFuture<Throwable> visitor = creation(1, new PrefixStore("group", store));
      store.get("group/threaded/hub", RawWorld.TIMEOUT);
      own.close();
      assertThat(host.get(60, TimeUnit.SECONDS)).isInstanceOf(StoreClosedException.class);
      assertThat(visitor.get(60, TimeUnit.SECONDS))
          .isInstanceOfAny(PeerLostException.class, BackendException.class)
          .hasMessageContaining("rank 0");
    }
  }

  private static CompletableFuture<Throwable> creation(int rank, Store store) {
    return CompletableFuture.supplyAsync(
        () ->
            catchThrowable(
                () ->
                    PROVIDER.create(
                        RawWorld.context(
                            rank, 3, store, RawWorld.TIMEOUT, new ConcurrentHashMap<>()))),
        command -> Thread.ofPlatform().daemon().start(command));
  }
}
