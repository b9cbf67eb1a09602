package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.StoreSilentException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Tests which ranks are named when a group cannot be set up. A rank is stopped in the sense that
 * its calls to the store hang.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SetUpBlameTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  /** How long ranks wait for an answer. */
  private static final Duration ANSWER = Duration.ofSeconds(5);

  private static final String LATE =
      "%s timed out in init: backend 'scripted' could not be set up on rank 2/3 of group 1.0:"
          + " dev.tutti.spi.PeerLateException: ranks 0, 1 did not publish what came of it; rank 1"
          + " does not answer";

  /** What a rank adds that the others found at fault. */
  private static final String SEEN =
      "; as seen by the other ranks, this rank, %d, made no progress or did not call it [";

  private final ScriptedProvider provider = new ScriptedProvider();
  private final StuckStore stopped = new StuckStore();

  /** How a rank ended, and when. */
  private record End(Throwable failure, Duration after) {}

  /** Runs three ranks, one of which can be stopped, until the others are finished. */
  private List<End> run(int stoppable, Simulation.RankBody<Object> body) throws Exception {
    CountDownLatch others = new CountDownLatch(2);
    HashStore shared = Simulation.store();
    return Simulation.ranks(
        3,
        shared,
        provider,
        (options, rank) -> {
          GroupOptions own =
              rank == stoppable ? options.withStore(stopped.around(shared)) : options;
          Throwable failure = catchThrowable(() -> body.run(own, rank));
          Duration after = Simulation.now();
          if (rank != stoppable) {
            others.countDown();
            if (others.getCount() == 0) {
              stopped.released.countDown();
            }
          }
          return new End(failure, after);
        });
  }

  private static void assertAllEnded(List<End> ends, int failedRank, Duration after) {
    assertThat(ends).hasSize(3);
    for (End end : ends) {
      assertThat(end.after).isEqualTo(after);
      assertThat(end.failure)
          .isInstanceOfSatisfying(
              CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(failedRank));
    }
  }

  private static Object init(GroupOptions options, int rank) {
    ProcessGroup.init(options).close();
    return rank;
  }

  private static Object split(GroupOptions options, int rank) {
    try (ProcessGroup group = ProcessGroup.init(options)) {
      return group.split(0, rank);
    }
  }

  /** Stops rank 1 and lets rank 0 wait for it. Rank 2 finds both late and reports that. */
  private void stopOneForWhomAnotherWaits(String group) {
    CountDownLatch inside = new CountDownLatch(2);
    provider.create =
        context -> {
          if (!context.group().equals(group)) {
            return;
          }
          if (context.rank() == 2) {
            inside.await();
            throw new PeerLateException(List.of(0, 1), "did not publish what came of it");
          }
          if (context.rank() == 1) {
            stopped.stuck = true;
          }
          inside.countDown();
          if (context.rank() == 1) {
            stopped.released.await();
          }
          context.store().get("never", LONG);
        };
  }

  @Simulated
  void aSplitNamesWhoDoesNotAnswerAndNotWhoWaitsForIt() throws Exception {
    stopOneForWhomAnotherWaits("1.0");
    List<End> ends = run(1, SetUpBlameTest::split);
    assertAllEnded(ends, 1, ANSWER);
    assertThat(ends.get(0).failure).hasMessageStartingWith(LATE.formatted("init failed: rank 2"));
    assertThat(ends.get(1).failure)
        .hasMessageStartingWith(LATE.formatted("init failed: rank 2") + SEEN.formatted(1));
    assertThat(ends.get(2).failure)
        .hasMessageStartingWith(LATE.formatted("init failed: this rank"));
  }

  @Simulated
  void aJobNamesWhoDoesNotAnswerAndNotWhoWaitsForIt() throws Exception {
    stopOneForWhomAnotherWaits("0");
    List<End> ends = run(1, SetUpBlameTest::init);
    for (End end : ends) {
      assertThat(end.after).isEqualTo(ANSWER);
      assertThat(end.failure)
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("did not publish what came of it; rank 1 does not answer")
          .hasMessageContaining(", peer rank 1, first failing rank 1, after 0 ms]. Check that all");
    }
    assertThat(ends.get(1).failure).hasMessageContaining(SEEN.formatted(1));
    assertThat(ends.get(2).failure).hasMessageContaining("this rank timed out in init");
  }

  /**
   * A rank that is still waiting in an earlier split cannot come; the rank that it waits for there
   * does not answer.
   */
  @Simulated
  void aSplitNamesWhoDoesNotAnswerAndNotWhoIsInTheSplitBefore() throws Exception {
    CountDownLatch inside = new CountDownLatch(2);
    provider.create =
        context -> {
          if (context.group().equals("1.0") && context.rank() > 0) {
            if (context.rank() == 2) {
              stopped.stuck = true;
            }
            inside.countDown();
            if (context.rank() == 2) {
              stopped.released.await();
            }
            context.store().get("never", LONG);
          }
        };
    List<End> ends =
        run(
            2,
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(options)) {
                group.split(0, rank);
                inside.await();
                group.setTimeout(Duration.ofSeconds(1));
                return group.split(0, rank);
              }
            });
    assertAllEnded(ends, 2, ANSWER.plusSeconds(1));
    String late = " in split: ranks 1, 2 did not call it; rank 2 does not answer";
    assertThat(ends.get(0).failure)
        .hasMessageStartingWith("split failed: this rank timed out" + late + " [");
    String refused = "split refused because the group had already failed: rank 0 timed out";
    assertThat(ends.get(1).failure).hasMessageStartingWith(refused + late + " [");
    assertThat(ends.get(2).failure).hasMessageStartingWith(refused + late + SEEN.formatted(2));
  }

  /** Rank 2 cannot set up; rank 1 sees its connection end before the failure is reported. */
  private void checkThatTheOtherSaysWhy(PeerLostException end, int blamed) throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    provider.create =
        context -> {
          if (context.group().equals("1.0") && context.rank() == 1) {
            context.onFailure().failed(end, blamed);
            seen.countDown();
          }
          if (context.group().equals("1.0") && context.rank() == 2) {
            seen.await();
            throw new IllegalStateException("out of sockets");
          }
          if (context.group().equals("1.0")) {
            context.store().get("never", LONG);
          }
        };
    End other = run(0, SetUpBlameTest::split).get(1);
    assertThat(other.after).isZero();
    assertThat(other.failure)
        .hasMessageStartingWith(
            "init failed: rank 2 failed in init: backend 'scripted' could not be set up on rank 2/3"
                + " of group 1.0: java.lang.IllegalStateException: out of sockets [")
        .isInstanceOfSatisfying(
            CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(2));
  }

  @Simulated
  void whoGaveUpWithoutANameSaysWhy() throws Exception {
    checkThatTheOtherSaysWhy(PeerLostException.farewell(-1, "rank 2 gave up the group"), -1);
  }

  @Simulated
  void whoGaveUpSaysWhy() throws Exception {
    checkThatTheOtherSaysWhy(PeerLostException.farewell(2, "rank 2 gave up the group"), 2);
  }

  @Simulated
  void whoResetAConnectionSaysWhy() throws Exception {
    IOException reset = new IOException("Connection reset");
    checkThatTheOtherSaysWhy(new PeerLostException(2, "rank 2 is gone", reset), 2);
  }

  @Simulated
  void whoCannotSayWhyIsNotNamedWhereTheStoreIsSilent() {
    provider.create =
        context -> {
          stopped.stuck = true;
          IOException reset = new IOException("Connection reset");
          context.onFailure().failed(new PeerLostException(2, "rank 2 is gone", reset), 2);
          context.store().set("address", "here");
        };
    GroupOptions options =
        Simulation.options(1, 3, stopped.around(Simulation.store()), provider)
            .withTimeout(Duration.ofSeconds(1));
    Throwable failure = catchThrowable(() -> ProcessGroup.init(options));
    assertThat(Simulation.now()).isEqualTo(ANSWER);
    assertThat(failure)
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining(
            " does not answer within 5 s. Check that all ranks can reach the store")
        .hasMessageNotContaining("rank 2")
        .hasCauseInstanceOf(StoreSilentException.class);
    stopped.released.countDown();
  }
}
