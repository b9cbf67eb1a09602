package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tutti.AbortedException;
import dev.tutti.CallOptions;
import dev.tutti.Codec;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupClosedException;
import dev.tutti.GroupListener;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.WorkState;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GroupTest {
  private static <T> List<T> world(int size, LocalWorld.Body<T> body) throws Exception {
    return LocalWorld.run(size, new LocalProvider(), body);
  }

  @Test
  void reducesInlineAndAsync() throws Exception {
    List<float[]> results =
        world(
            3,
            group -> {
              Tensor tensor = Tensor.of(group.rank(), 1f);
              group.allReduce(tensor);
              List<Work> works = new ArrayList<>();
              for (int i = 0; i < 20; i++) {
                works.add(group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC));
              }
              group.barrier();
              for (int i = 0; i < works.size(); i++) {
                assertThat(works.get(i).state()).isEqualTo(WorkState.COMPLETED);
                assertThat(works.get(i).sequenceNumber()).isEqualTo(i + 2);
              }
              assertThat(group.sequenceNumber()).isEqualTo(22);
              return tensor.toFloatArray();
            });
    assertThat(results)
        .allSatisfy(
            values ->
                assertThat(values)
                    .containsExactly((float) Math.pow(3, 21), (float) Math.pow(3, 21)));
  }

  @Test
  void stagesStridedAndHeapTensors() throws Exception {
    world(
        2,
        group -> {
          Tensor matrix = Tensor.of(1f, 2f, 3f, 4f, 5f, 6f).view(2, 3);
          group.allReduce(matrix.transpose(0, 1));
          assertThat(matrix.toFloatArray()).containsExactly(2, 4, 6, 8, 10, 12);
          group.allReduce(matrix.narrow(1, 1, 1));
          assertThat(matrix.toFloatArray()).containsExactly(2, 8, 6, 8, 20, 12);
          float[] heap = {1, 2};
          group.allReduce(
              Tensor.wrap(java.lang.foreign.MemorySegment.ofArray(heap), DType.FLOAT32, 2));
          assertThat(heap).containsExactly(2, 4);
          return null;
        });
  }

  @Test
  void allocatesNothingPerSynchronousCall() {
    try (ProcessGroup group = new ScriptedProvider().alone()) {
      Tensor tensor = Tensor.of(1f, 2f);
      assertThat(Allocations.perCall(() -> group.allReduce(tensor))).isZero();
      assertThat(
              Allocations.perCall(
                  () -> group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC).await()))
          .as("a call that returns its work")
          .isPositive();
    }
  }

  @Test
  void refusesBadArgumentsAndStaysUsable() throws Exception {
    world(
        2,
        group -> {
          assertThatThrownBy(() -> group.send(Tensor.of(1f), 7))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("rank " + group.rank() + "/2")
              .hasMessageContaining("peer must be a rank in 0..1, not 7");
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.BAND))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("BAND is not defined on dtype float32");
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1), ReduceOp.SUM))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("dtype int32");
          assertThatThrownBy(() -> group.broadcast(Tensor.of(1f), 0))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("'local' does not support broadcast");
          try (Arena confined = Arena.ofConfined()) {
            Tensor tensor = Tensor.allocate(confined, DType.FLOAT32, 1);
            assertThatThrownBy(() -> group.allReduce(tensor))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("is confined to one thread");
          }
          Tensor tensor = Tensor.of(1f);
          group.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(2);
          return null;
        });
  }

  @Test
  void anObjectThatIsTooLongIsRefusedAndMayBeReceivedAfterwards() throws Exception {
    world(
        2,
        group -> {
          if (group.rank() == 0) {
            group.sendObject(new byte[] {1, 2, 3}, 1, Codec.BYTES);
            group.sendObject(new byte[] {4, 5}, 1, Codec.BYTES);
          } else {
            assertThatThrownBy(() -> group.recvObject(0, Codec.BYTES, 2))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("rank 0 announced an object of 3 bytes, not of 0 to 2");
            Tensor bytes = Tensor.allocate(DType.UINT8, 3);
            group.recv(bytes, 0);
            assertThat(bytes.getLong(2)).isEqualTo(3);
            assertThat(group.recvObject(0, Codec.BYTES, 2)).containsExactly(4, 5);
            assertThatThrownBy(() -> group.recvObject(0, Codec.BYTES, -1))
                .isInstanceOf(IllegalArgumentException.class);
          }
          return null;
        });
  }

  /** Threads of a rank send to the same peer, in any order; no length meets another's bytes. */
  @Test
  void threadsMayExchangeObjectsAtTheSameTime() throws Exception {
    int threads = 8;
    world(
        2,
        group -> {
          List<Future<Integer>> lengths = new ArrayList<>();
          try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < threads; i++) {
              byte[] own = new byte[i];
              lengths.add(
                  each.submit(
                      () -> {
                        if (group.rank() == 0) {
                          group.sendObject(own, 1, Codec.BYTES);
                          return own.length;
                        }
                        return group.recvObject(0, Codec.BYTES).length;
                      }));
            }
          }
          assertThat(lengths)
              .extracting(Future::resultNow)
              .containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6, 7);
          return null;
        });
  }

  /** Otherwise a rank that sends something else makes its peer allocate any amount of memory. */
  @Test
  void anImpossibleLengthOfAnObjectIsRefusedBeforeMemoryIsAllocated() throws Exception {
    long[] lengths = {-1, Long.MAX_VALUE, Integer.MAX_VALUE};
    world(
        2,
        group -> {
          for (long length : lengths) {
            if (group.rank() == 0) {
              group.send(Tensor.of(length), 1);
            } else {
              assertThatThrownBy(() -> group.recvObject(0, Codec.BYTES))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining(
                      "recvObject on rank 1: rank 0 announced an object of " + length + " bytes");
            }
          }
          return null;
        });
    ScriptedProvider provider = new ScriptedProvider();
    try (ProcessGroup group = provider.joinAs(1, 2)) {
      for (long length : lengths) {
        provider.broadcast = (op, tensor) -> tensor.setLong(0, length);
        assertThatThrownBy(() -> group.broadcastObject(null, 0, Codec.BYTES))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("rank 1: a rank announced an object of " + length + " bytes");
      }
    }
  }

  static boolean hasCalled(@Nullable ProcessGroup group) {
    return group != null && group.sequenceNumber() == 1;
  }

  @Test
  void timesOutNamingTheMissingRank() throws Exception {
    List<Throwable> failures = withoutRankOne(Duration.ofMillis(300));
    for (int rank : new int[] {0, 2}) {
      CollectiveException failure = (CollectiveException) failures.get(rank);
      assertThat(failure.failedRank()).hasValue(1);
      assertThat(failure.opType()).isEqualTo(OpType.ALL_REDUCE);
      assertThat(failure.sequenceNumber()).isEqualTo(1);
      assertThat(failure.elapsed()).isGreaterThanOrEqualTo(Duration.ofMillis(50));
      assertThat(failure)
          .hasMessageContaining("rank 1 has not called it (it has called no collective so far)");
    }
    // The time of one may end while it finds that the time of the other has ended.
    assertThat(failures).hasAtLeastOneElementOfType(CollectiveTimeoutException.class);
    assertThat(failures.get(1)).isInstanceOf(PeerFailedException.class);
    assertThat(((CollectiveException) failures.get(1)).failedRank()).hasValue(1);
  }

  /** Lets ranks 0 and 2 reduce, and rank 0 wait for a short time, which begins after rank 2. */
  private static List<Throwable> withoutRankOne(Duration brief) throws Exception {
    AtomicReference<ProcessGroup> rankTwo = new AtomicReference<>();
    return world(
        3,
        group -> {
          if (group.rank() == 1) {
            LocalWorld.until("the failure", () -> group.failure().isPresent());
            return catchThrowable(() -> group.allReduce(Tensor.of(1f)));
          }
          if (group.rank() == 2) {
            rankTwo.set(group);
          } else {
            LocalWorld.until("rank 2", () -> hasCalled(rankTwo.get()));
          }
          CallOptions options =
              CallOptions.timeout(group.rank() == 2 ? Duration.ofMinutes(10) : brief);
          Throwable failure =
              catchThrowable(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, options));
          assertThat(catchThrowable(() -> group.allReduce(Tensor.of(1f))))
              .as("what follows on a rank that may have timed out itself")
              .isExactlyInstanceOf(
                  failure.getMessage().contains("this rank timed out")
                      ? CollectiveException.class
                      : PeerFailedException.class);
          return failure;
        });
  }

  @Test
  void abortFreesAllRanks() throws Exception {
    List<Throwable> failures =
        world(
            3,
            group -> {
              if (group.rank() == 2) {
                group.store().await(List.of("queued0", "queued1"));
                group.abort("out of coffee");
                return catchThrowable(
                    () -> {
                      while (true) {
                        group.allReduce(Tensor.of(1f));
                      }
                    });
              }
              Work queued = group.barrier(CallOptions.ASYNC);
              Work behind = group.barrier(CallOptions.ASYNC);
              group.store().set("queued" + group.rank(), "1");
              assertThat(catchThrowable(behind::await)).isInstanceOf(PeerFailedException.class);
              return catchThrowable(queued::await);
            });
    assertThat(failures.get(2)).isInstanceOf(AbortedException.class);
    for (int rank : new int[] {0, 1}) {
      CollectiveException failure = (CollectiveException) failures.get(rank);
      assertThat(failure).isInstanceOf(PeerFailedException.class);
      assertThat(failure.failedRank()).hasValue(2);
      assertThat(failure).hasMessageContaining("rank 2 aborted the group: out of coffee");
    }
  }

  @Test
  void closeIsIdempotentAndFailsWhatIsPending() throws Exception {
    world(
        2,
        group -> {
          Work pending = null;
          if (group.rank() == 0) {
            pending = group.recv(Tensor.of(0f), 1, 0, CallOptions.ASYNC);
          }
          group.close();
          group.close();
          assertThat(group.isClosed()).isTrue();
          assertThatThrownBy(() -> group.allReduce(Tensor.of(1f)))
              .isInstanceOf(GroupClosedException.class)
              .hasMessageContaining("allReduce refused: group 0 is closed on rank " + group.rank());
          if (pending != null) {
            assertThat(catchThrowableOfType(CollectiveException.class, pending::await))
                .hasMessageContaining("closed with operations pending");
          }
          return null;
        });
  }

  @Test
  void sendsBetweenRanksAndTellsListeners() throws Exception {
    world(
        2,
        group -> {
          List<String> heard = new CopyOnWriteArrayList<>();
          group.addListener(
              new GroupListener() {
                @Override
                public void before(OpEvent event) {
                  heard.add("before " + event.opType().label() + event.sequenceNumber());
                }

                @Override
                public void after(OpEvent event, Outcome outcome) {
                  heard.add("after " + event.opType().label() + " " + outcome.state());
                }
              });
          Tensor tensor = Tensor.of(group.rank() + 5f);
          if (group.rank() == 0) {
            group.send(tensor, 1);
          } else {
            Work work = group.recv(tensor, 0, 0, CallOptions.ASYNC);
            assertThat(work.toCompletableFuture().get(60, TimeUnit.SECONDS))
                .containsExactly(tensor);
            assertThat(work.sourceRank()).isZero();
            assertThat(tensor.toFloatArray()).containsExactly(5);
          }
          group.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(10);
          assertThat(heard).contains("before allReduce1", "after allReduce COMPLETED");
          assertThat(group.diagnostics().flightRecord()).contains("\"op\":\"allReduce\",\"seq\":1");
          return null;
        });
  }

  @Test
  void splitsAndFormsSubgroups() throws Exception {
    world(
        4,
        group -> {
          ProcessGroup half = group.split(group.rank() % 2, -group.rank()).orElseThrow();
          assertThat(half.globalRanks())
              .isEqualTo(group.rank() % 2 == 0 ? List.of(2, 0) : List.of(3, 1));
          Tensor tensor = Tensor.of((float) group.rank());
          half.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(group.rank() % 2 == 0 ? 2 : 4);
          assertThat(group.split(-1, 0)).isEmpty();
          var some = group.subgroup(List.of(3, 0));
          assertThat(some.isPresent()).isEqualTo(group.rank() % 3 == 0);
          some.ifPresent(
              both -> {
                assertThat(both.name()).isEqualTo("3");
                assertThat(both.globalRanks()).containsExactly(0, 3);
                both.barrier();
              });
          group.barrier();
          group.close();
          assertThat(half.isClosed()).isTrue();
          return null;
        });
  }

  /** Rank 0 enforces the deadline; the others wait for its verdict. */
  @ParameterizedTest
  @CsvSource({"0, 0", "1, 2000"})
  void aBackendHasLongerForAMonitoredBarrierWhereItIsNotRankZero(int rank, long slackMillis) {
    ScriptedProvider provider = new ScriptedProvider();
    AtomicLong deadline = new AtomicLong();
    provider.allReduce = (op, tensor) -> deadline.set(op.deadlineNanos());
    Duration timeout = Duration.ofSeconds(15);
    try (ProcessGroup group = provider.joinAs(rank, 2)) {
      long before = System.nanoTime();
      group.monitoredBarrier(timeout, MissingRanks.ALL);
      long after = System.nanoTime();
      long expected = timeout.plusMillis(slackMillis).toNanos();
      assertThat(deadline.get()).isBetween(before + expected, after + expected);
      group.monitoredBarrier();
      assertThat(deadline.get())
          .isGreaterThanOrEqualTo(after + group.timeout().plusMillis(slackMillis).toNanos());
    }
  }

  @Test
  void monitoredBarriersLeaveTheKeysOfTheLastOneOnly() throws Exception {
    HashStore store = new HashStore();
    LocalWorld.ranks(
        3,
        store,
        new LocalProvider(),
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(options)) {
            for (int i = 0; i < 5; i++) {
              group.monitoredBarrier(Duration.ofSeconds(60), MissingRanks.ALL);
            }
            return rank;
          }
        });
    assertThat(store.listKeys().stream().filter(key -> key.contains("/monitored/")))
        .hasSize(3)
        .allMatch(key -> key.contains("/monitored/5/"));
  }
}
