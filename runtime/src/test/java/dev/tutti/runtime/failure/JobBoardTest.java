package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.Watchdog;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests how ranks find out who is to blame, as ranks of a group whose rank 1 timed out first. */
class JobBoardTest {
  private static final int SIZE = 64;
  private static final List<Integer> RANKS = IntStream.range(0, SIZE).boxed().toList();
  private static final AnswerTimes TIMES = new AnswerTimes(Duration.ofMillis(20));
  private static final AnswerTimes PATIENT = new AnswerTimes(Duration.ofMinutes(1));
  private static final FailureEvent EVENT =
      new FailureEvent("0", Kind.TIMEOUT, 1, -1, OpType.BARRIER, 3, Duration.ZERO, "no data");

  private final HashStore store = new HashStore();
  private final List<String> calls = new ArrayList<>();

  private JobBoard board(int rank, AnswerTimes times) {
    Store counted =
        (Store)
            Proxy.newProxyInstance(
                Store.class.getClassLoader(),
                new Class<?>[] {Store.class},
                (_, method, arguments) -> {
                  calls.add(method.getName());
                  try {
                    return method.invoke(store, arguments);
                  } catch (InvocationTargetException e) {
                    throw e.getCause();
                  }
                });
    return new JobBoard(counted, rank, times, Time.SYSTEM);
  }

  /** Lets ranks answer, of which one has not called the barrier. */
  private void answer(int rank, int behind) {
    JobBoard board = new JobBoard(store, rank, TIMES, Time.SYSTEM);
    board.join();
    long last = rank == behind ? 2 : 3;
    board.publish(
        "0",
        RankProgress.ofCalls(
                List.of(new Issued(OpType.BARRIER, last, "", "", -1, -1, "")), List.of())
            .encode());
  }

  private Evidence collect(FailureEvent event, AnswerTimes times) {
    return board(1, times)
        .collect(
            Evidence.of(event, SIZE, 1, 0, false),
            RANKS,
            rank -> JobBoard.progressKey("0", rank),
            Watchdog.of(Time.SYSTEM).runningNanos() + times.answer().toNanos());
  }

  @Test
  void theAnswersOfAllRanksAreReadInOneCall() {
    RANKS.forEach(rank -> answer(rank, 5));
    Evidence all = collect(EVENT, PATIENT);
    assertThat(calls).containsExactly("check", "multiGet");
    assertThat(all.answers().keySet()).containsExactlyElementsOf(RANKS);
    assertThat(Blame.judge(all).failedRank()).isEqualTo(5);
  }

  @Test
  void aRankThatDoesNotAnswerIsSilent() {
    RANKS.stream().filter(rank -> rank != 2).forEach(rank -> answer(rank, -1));
    new JobBoard(store, 2, TIMES, Time.SYSTEM).join();
    Evidence found = collect(EVENT, TIMES);
    assertThat(found.silent()).containsExactly(2);
    assertThat(Blame.judge(found).text()).isEqualTo("no data; rank 2 does not answer");
  }

  @Test
  void aRankThatNeverJoinedIsNotWaitedFor() {
    RANKS.stream().filter(rank -> rank != 4).forEach(rank -> answer(rank, -1));
    Evidence found = collect(EVENT, PATIENT);
    assertThat(found.strangers()).containsExactly(4);
    assertThat(Blame.judge(found).failedRank()).isEqualTo(-1);
  }

  @Test
  void aMessageIsLookedIntoWithoutTheAnswersOfRanksOffItsWay() {
    List.of(1, 2).forEach(rank -> answer(rank, -1));
    RANKS.stream()
        .filter(rank -> rank > 2 || rank == 0)
        .forEach(rank -> new JobBoard(store, rank, TIMES, Time.SYSTEM).join());
    FailureEvent event =
        new FailureEvent("0", Kind.TIMEOUT, 1, -1, OpType.RECV, 1, 2, 0, Duration.ZERO, "no data");
    Evidence found = collect(event, PATIENT);
    assertThat(found.answers().keySet()).containsExactly(1, 2);
    assertThat(Blame.judge(found).text()).isEqualTo("no data; rank 2 did not send in time");
  }
}
