package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.GroupClosedException;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.rendezvous.RankAgreement;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests waits for other ranks that use the store. */
class SubgroupTest {
  @Test
  void aSplitNamesTheRankThatDoesNotCome() throws Exception {
    HashStore store = new HashStore();
    List<Throwable> failures =
        LocalWorld.run(
            3,
            store,
            new LocalProvider(),
            group -> {
              if (group.rank() == 1) {
                LocalWorld.until("the failure", () -> group.failure().isPresent());
                return group.failure().orElseThrow();
              }
              if (group.rank() == 2) {
                group.setTimeout(Duration.ofMinutes(10));
              } else {
                LocalWorld.until(
                    "rank 2",
                    () -> store.listKeys().stream().anyMatch(key -> key.matches(".*/split/.*/2")));
                group.setTimeout(Duration.ofMillis(300));
              }
              return catchThrowable(() -> group.split(0, 0));
            });
    for (int rank : new int[] {0, 2}) {
      CollectiveException failure = (CollectiveException) failures.get(rank);
      assertThat(failure).hasMessageContaining("rank 1 did not call it").isNotNull();
      assertThat(failure.opType()).isEqualTo(OpType.SPLIT);
      assertThat(failure.failedRank()).hasValue(1);
    }
    assertThat(failures).hasAtLeastOneElementOfType(CollectiveTimeoutException.class);
  }

  /** Lets rank 0 wait for rank 1, which aborts the group. */
  private static void assertEndsWhenTheGroupFails(Consumer<ProcessGroup> wait) throws Exception {
    List<Throwable> failures =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              if (group.rank() == 1) {
                group.abort("no more groups");
                return group.failure().orElse(null);
              }
              group.setTimeout(Duration.ofMinutes(10));
              return catchThrowable(() -> wait.accept(group));
            });
    assertThat(failures.get(0))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("no more groups");
  }

  @Test
  void aSplitEndsWhenTheGroupFails() throws Exception {
    assertEndsWhenTheGroupFails(group -> group.split(0, 0));
  }

  @Test
  void aRankThatGivesAnotherListIsRefusedAndTheGroupsThatFormedFail() throws Exception {
    CountDownLatch formed = new CountDownLatch(2);
    List<Throwable> failures =
        LocalWorld.run(
            4,
            new LocalProvider(),
            group -> {
              Throwable failure;
              if (group.rank() < 2) {
                ProcessGroup pair = group.subgroup(List.of(1, 0)).orElseThrow();
                formed.countDown();
                LocalWorld.until("the failure", () -> pair.failure().isPresent());
                failure = pair.failure().orElseThrow();
              } else {
                assertThat(formed.await(60, TimeUnit.SECONDS)).isTrue();
                List<Integer> ranks = group.rank() == 2 ? List.of(1, 2) : List.of(0);
                failure = catchThrowable(() -> group.subgroup(ranks));
              }
              group.barrier();
              return failure;
            });
    assertThat(failures.get(2)).isExactlyInstanceOf(CollectiveException.class);
    assertThat(failures.get(2).getMessage())
        .matches(
            "subgroup failed: the ranks of group 0 gave different lists: rank [01] gave 0, 1, but"
                + " rank 2 gave 1, 2 .*");
    assertThat(failures.get(3)).isExactlyInstanceOf(CollectiveException.class);
    assertThat(failures.get(3).getMessage())
        .matches(".* rank [01] gave 0, 1, but rank 3 gave 0 .*");
    for (int rank : new int[] {0, 1}) {
      assertThat(failures.get(rank)).isInstanceOf(CollectiveException.class);
      assertThat(failures.get(rank).getMessage())
          .matches(".* rank [01] gave 0, 1, but rank [23] gave (1, 2|0) .*");
    }
  }

  @Test
  void aRankThatWaitsInSetUpLearnsThatAnotherGaveAnotherList() throws Exception {
    CountDownLatch waits = new CountDownLatch(1);
    BackendProvider waiting =
        new WaitingProvider(
            context -> {
              waits.countDown();
              context.store().get("never", Duration.ofSeconds(60));
            });
    List<Throwable> failures =
        LocalWorld.run(
            2,
            waiting,
            group -> {
              if (group.rank() == 1) {
                assertThat(waits.await(60, TimeUnit.SECONDS)).isTrue();
              }
              List<Integer> ranks = group.rank() == 0 ? List.of(0, 1) : List.of(1);
              return catchThrowable(() -> group.subgroup(ranks));
            });
    for (Throwable failure : failures) {
      assertThat(failure)
          .isExactlyInstanceOf(CollectiveException.class)
          .hasMessageStartingWith(
              "subgroup failed: the ranks of group 0 gave different lists: rank 0 gave 0, 1, but"
                  + " rank 1 gave 1 [");
    }
  }

  /**
   * A rank that is in no list and comes first has no list to compare with; the others compare with
   * its list.
   */
  @Test
  void aListThatLacksItsRankIsComparedToo() throws Exception {
    CountDownLatch first = new CountDownLatch(1);
    List<Object> results =
        LocalWorld.run(
            3,
            new LocalProvider(),
            group -> {
              if (group.rank() == 2) {
                Object none = group.subgroup(List.of(0));
                first.countDown();
                return none;
              }
              assertThat(first.await(60, TimeUnit.SECONDS)).isTrue();
              return catchThrowable(() -> group.subgroup(List.of(0, 1)));
            });
    assertThat(results.get(2)).isEqualTo(Optional.empty());
    for (int rank : new int[] {0, 1}) {
      CollectiveException failure = (CollectiveException) results.get(rank);
      assertThat(failure.getMessage())
          .matches(
              "subgroup failed: the ranks of group 0 gave different lists: rank 2 gave 0, but rank "
                  + "[01] gave 0, 1 \\[rank [01]/3, group 0, subgroup, peer rank 2, .*");
      assertThat(failure.opType()).isEqualTo(OpType.SUBGROUP);
    }
  }

  @Test
  void aRefusedCallIsNamedAndHasNoNumber() throws Exception {
    List<List<Throwable>> failures =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              group.abort("no more groups");
              return List.of(
                  catchThrowable(() -> group.subgroup(List.of(0, 1))),
                  catchThrowable(() -> group.split(0, 0)),
                  catchThrowable(group::barrier));
            });
    for (int rank = 0; rank < 2; rank++) {
      List<String> names = List.of("subgroup", "split", "barrier");
      for (int i = 0; i < names.size(); i++) {
        assertThat(failures.get(rank).get(i).getMessage())
            .startsWith(names.get(i) + " refused because the group had already failed: ")
            .contains("[rank " + rank + "/2, group 0, " + names.get(i) + ", ");
      }
    }
  }

  @Test
  void aListIsComparedWithinOneLifeOfTheJob() throws Exception {
    HashStore store = new HashStore();
    for (List<Integer> ranks : List.of(List.of(0, 1), List.of(1, 2))) {
      List<Boolean> members =
          LocalWorld.ranks(
              3,
              store,
              new LocalProvider(),
              (options, rank) -> {
                try (ProcessGroup group = ProcessGroup.init(options)) {
                  boolean member = group.subgroup(ranks).isPresent();
                  group.barrier();
                  return member;
                }
              });
      assertThat(members).isEqualTo(List.of(ranks.contains(0), true, ranks.contains(2)));
      // Otherwise a rank whose leave is late would still be in the job that it joins again.
      store.await(
          List.of("tutti/0/left/0", "tutti/0/left/1", "tutti/0/left/2"), Duration.ofMinutes(1));
    }
  }

  @Test
  void aClosedPartIsForgotten() throws Exception {
    List<Boolean> forgotten =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              WeakReference<ProcessGroup> part = closedPart(group);
              LocalWorld.until(
                  "the collector",
                  () -> {
                    System.gc();
                    return part.get() == null;
                  });
              group.barrier();
              return part.get() == null;
            });
    assertThat(forgotten).containsExactly(true, true);
  }

  private static WeakReference<ProcessGroup> closedPart(ProcessGroup group) {
    try (ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow()) {
      part.barrier();
      return new WeakReference<>(part);
    }
  }

  @Test
  void listsOfRanksAreWrittenShortly() {
    assertThat(RankAgreement.text(List.of(5))).isEqualTo("5");
    assertThat(RankAgreement.text(List.of(0, 1, 2))).isEqualTo("0, 1, 2");
    assertThat(RankAgreement.text(IntStream.range(0, 4096).boxed().toList())).isEqualTo("0..4095");
    assertThat(RankAgreement.text(List.of(0, 8, 16, 24, 25, 26, 27, 40)))
        .isEqualTo("0..24 by 8, 25, 26, 27, 40");
    assertThat(RankAgreement.text(List.of(1, 3, 4, 5, 6))).isEqualTo("1, 3..6");
  }

  @Test
  void aMonitoredBarrierEndsOnRankZeroWhenTheGroupFails() throws Exception {
    assertEndsWhenTheGroupFails(
        group -> group.monitoredBarrier(Duration.ofMinutes(10), MissingRanks.ALL));
  }

  /** Rank 0 is not to blame: it waits for rank 1, which skipped the call. */
  @Test
  void aTimeoutTellsWhoWaitsForOthersToMakeAGroup() throws Exception {
    assertThat(whileRankZeroMakesAGroup(Duration.ofMillis(300)))
        .allSatisfy(
            failure -> {
              assertThat(failure)
                  .hasMessageContaining(
                      "rank 0 waits in the set-up of group 1 of ranks 0, 1 (it has called no"
                          + " collective so far)");
              assertThat(((CollectiveException) failure).failedRank()).isEmpty();
            });
  }

  /** Lets ranks 1 and 2 reduce, and rank 1 wait for a short time, which begins after rank 2. */
  private static List<Throwable> whileRankZeroMakesAGroup(Duration brief) throws Exception {
    CountDownLatch waits = new CountDownLatch(1);
    AtomicReference<ProcessGroup> rankTwo = new AtomicReference<>();
    return LocalWorld.run(
        3,
        new WaitingProvider(
            context -> {
              waits.countDown();
              context.store().get("other", Duration.ofSeconds(60));
            }),
        group -> {
          if (group.rank() == 0) {
            return catchThrowable(() -> group.subgroup(List.of(0, 1)));
          }
          assertThat(waits.await(60, TimeUnit.SECONDS)).isTrue();
          if (group.rank() == 2) {
            rankTwo.set(group);
          } else {
            LocalWorld.until("rank 2", () -> GroupTest.hasCalled(rankTwo.get()));
          }
          CallOptions options =
              CallOptions.timeout(group.rank() == 2 ? Duration.ofMinutes(10) : brief);
          return catchThrowable(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, options));
        });
  }

  @Test
  void anInterruptEndsNoSplit() throws Exception {
    CountDownLatch interrupted = new CountDownLatch(1);
    AtomicReference<Thread> waiting = new AtomicReference<>();
    List<Integer> sizes =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              if (group.rank() == 0) {
                Thread.currentThread().interrupt();
                waiting.set(Thread.currentThread());
                interrupted.countDown();
              } else {
                assertThat(interrupted.await(60, TimeUnit.SECONDS)).isTrue();
                waiting.get().interrupt();
              }
              int size = group.split(0, 0).orElseThrow().size();
              assertThat(Thread.interrupted()).isEqualTo(group.rank() == 0);
              assertThat(group.failure()).isEmpty();
              return size;
            });
    assertThat(sizes).containsExactly(2, 2);
  }

  /** A provider that does something before a subgroup's backend is created. */
  private static final class WaitingProvider extends LocalProvider {
    private final Consumer<BackendContext> before;

    WaitingProvider(Consumer<BackendContext> before) {
      this.before = before;
    }

    @Override
    public Backend create(BackendContext context) {
      if (!context.group().equals("0")) {
        before.accept(context);
      }
      return super.create(context);
    }
  }

  /** As if from two threads of each rank, one of which comes first on one rank only. */
  @Test
  void methodsInAnotherOrderFailOnAllRanks() throws Exception {
    List<Throwable> failures =
        LocalWorld.run(
            3,
            new WaitingProvider(context -> context.store().get("never", context.timeout())),
            group -> {
              group.setTimeout(Duration.ofMinutes(10));
              return catchThrowable(
                  () -> {
                    if (group.rank() == 1) {
                      group.subgroup(List.of(0, 1, 2));
                    } else {
                      group.split(0, 0);
                    }
                  });
            });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageContaining(
                        "the ranks of group 0 made new groups in different orders: as number 1,")
                    .hasMessageContaining("rank 1 called subgroup")
                    .hasMessageMatching(".*rank [02] called split\\b.*"));
  }

  @Test
  @SuppressWarnings("try") // it is closed during the call
  void aSplitEndsWhenTheGroupCloses() throws Exception {
    HashStore store = new HashStore();
    CountDownLatch closed = new CountDownLatch(1);
    List<Throwable> failures =
        LocalWorld.ranks(
            2,
            store,
            new LocalProvider(),
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(options)) {
                if (rank == 1) {
                  assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
                  return null;
                }
                AtomicReference<Throwable> thrown = new AtomicReference<>();
                CompletableFuture<Void> split =
                    LocalWorld.async(() -> thrown.set(catchThrowable(() -> group.split(0, 0))));
                LocalWorld.until(
                    "the split",
                    () -> store.listKeys().stream().anyMatch(key -> key.contains("split/")));
                group.close();
                split.get(60, TimeUnit.SECONDS);
                return thrown.get();
              } finally {
                if (rank == 0) {
                  closed.countDown();
                }
              }
            });
    assertThat(failures.get(0)).isInstanceOf(GroupClosedException.class);
  }

  @Test
  @SuppressWarnings("try") // it is closed during the call
  void theSetUpOfASubgroupEndsWhenTheGroupCloses() throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.movesData = false;
    CountDownLatch entered = new CountDownLatch(1);
    provider.create =
        context -> {
          if (!context.group().equals("0")) {
            entered.countDown();
            context.store().get("never", context.timeout());
          }
        };
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    try (ProcessGroup group = provider.join(2)) {
      group.setTimeout(Duration.ofMinutes(10));
      CompletableFuture<Void> creation =
          LocalWorld.async(() -> thrown.set(catchThrowable(() -> group.subgroup(List.of(0, 1)))));
      assertThat(entered.await(60, TimeUnit.SECONDS)).isTrue();
      group.close();
      creation.get(60, TimeUnit.SECONDS);
    }
    assertThat(thrown.get()).isInstanceOf(GroupClosedException.class);
  }
}
