package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.StoreSilentException;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests which ranks are named when a group cannot be set up. A rank is stopped in the sense that
 * its calls to the store hang.
 */
@Timeout(300)
class SetUpBlameTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  private final ScriptedProvider provider = new ScriptedProvider();
  private StuckStore stopped = new StuckStore();
  private HashStore store = new HashStore();

  @AfterEach
  void goOn() {
    stopped.released.countDown();
  }

  /** Runs three ranks, one of which can be stopped, until the others are finished. */
  private List<Throwable> run(int stoppable, LocalWorld.RankBody<Object> body) throws Exception {
    CountDownLatch others = new CountDownLatch(2);
    return LocalWorld.ranks(
        3,
        store,
        provider,
        (options, rank) -> {
          if (rank == stoppable) {
            return catchThrowable(() -> body.run(options.withStore(stopped.around(store)), rank));
          }
          try {
            return catchThrowable(() -> body.run(options, rank));
          } finally {
            others.countDown();
            if (others.getCount() == 0) {
              stopped.released.countDown();
            }
          }
        });
  }

  /** Makes an attempt with a new store, and further ones if the machine is too busy. */
  private void attempt(Duration usual, LocalWorld.Attempt attempt) throws Exception {
    LocalWorld.attempt(
        usual,
        () -> {
          stopped = new StuckStore();
          store = new HashStore();
          attempt.run();
        });
  }

  /** Requires that all ranks that go on, and the store, have answered within a second. */
  private static void requireAnswers(String ranks, List<Throwable> failures)
      throws LocalWorld.BusyException {
    String late = "(?s).*(rank [" + ranks + "]|the store) does not answer.*";
    for (Throwable failure : failures) {
      if (String.valueOf(failure).matches(late)) {
        throw new LocalWorld.BusyException("no answer in time: " + failure);
      }
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

  @Test
  void aSplitNamesWhoDoesNotAnswerAndNotWhoWaitsForIt() throws Exception {
    attempt(Duration.ofMillis(1900), this::checkSplit);
  }

  private void checkSplit() throws Exception {
    stopOneForWhomAnotherWaits("1.0");
    List<Throwable> failures = run(1, SetUpBlameTest::split);
    requireAnswers("02", failures);
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .hasMessageContaining("rank 1 does not answer")
                    .isInstanceOfSatisfying(
                        CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(1)));
  }

  @Test
  void aJobNamesWhoDoesNotAnswerAndNotWhoWaitsForIt() throws Exception {
    attempt(Duration.ofMillis(1900), this::checkJob);
  }

  private void checkJob() throws Exception {
    stopOneForWhomAnotherWaits("0");
    List<Throwable> failures = run(1, SetUpBlameTest::init);
    requireAnswers("02", failures);
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContaining("rank 1 does not answer")
                    .hasMessageContaining("first failing rank 1"));
  }

  /** Lets rank 1 wait for rank 2 in one split, while rank 0 waits for both in the next. */
  private List<Throwable> runWithOneInTheSplitBefore() throws Exception {
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
    return run(
        2,
        (options, rank) -> {
          try (ProcessGroup group = ProcessGroup.init(options)) {
            group.split(0, rank);
            inside.await();
            group.setTimeout(Duration.ofSeconds(1));
            return group.split(0, rank);
          }
        });
  }

  /**
   * A rank that is still waiting in an earlier split cannot come; the rank that it waits for there
   * does not answer.
   */
  @Test
  void aSplitNamesWhoDoesNotAnswerAndNotWhoIsInTheSplitBefore() throws Exception {
    attempt(Duration.ofMillis(2900), this::checkSplitAfterAnother);
  }

  private void checkSplitAfterAnother() throws Exception {
    List<Throwable> failures = runWithOneInTheSplitBefore();
    requireAnswers("01", failures);
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOfSatisfying(
                        CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(2)));
    assertThat(failures.get(0))
        .hasMessageContaining("ranks 1, 2 did not call it; rank 2 does not answer");
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
    assertThat(run(0, SetUpBlameTest::split).get(1))
        .hasMessageContaining("out of sockets")
        .isInstanceOfSatisfying(
            CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(2));
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 2})
  void whoGaveUpSaysWhy(int blamed) throws Exception {
    PeerLostException farewell = PeerLostException.farewell(blamed, "rank 2 gave up the group");
    attempt(Duration.ofMillis(900), () -> checkThatTheOtherSaysWhy(farewell, blamed));
  }

  @Test
  void whoResetAConnectionSaysWhy() throws Exception {
    IOException reset = new IOException("Connection reset");
    PeerLostException gone = new PeerLostException(2, "rank 2 is gone", reset);
    attempt(Duration.ofMillis(900), () -> checkThatTheOtherSaysWhy(gone, 2));
  }

  @Test
  void whoCannotSayWhyIsNotNamedWhereTheStoreIsSilent() {
    provider.create =
        context -> {
          stopped.stuck = true;
          IOException reset = new IOException("Connection reset");
          context.onFailure().failed(new PeerLostException(2, "rank 2 is gone", reset), 2);
          context.store().set("address", "here");
        };
    GroupOptions options =
        GroupOptions.DEFAULT
            .withStore(stopped.around(store))
            .withRank(1)
            .withSize(3)
            .withProvider(provider)
            .withTimeout(Duration.ofSeconds(1));
    assertThat(catchThrowable(() -> ProcessGroup.init(options)))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("does not answer within")
        .hasMessageNotContaining("rank 2")
        .hasCauseInstanceOf(StoreSilentException.class);
  }
}
