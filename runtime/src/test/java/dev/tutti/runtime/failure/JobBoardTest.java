package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
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
        RankProgress.ofCalls(List.of(new Issued(OpType.BARRIER, last, "", "", -1, -1))).encode());
  }

  private Evidence investigate(int rank, AnswerTimes times) {
    return board(rank, times)
        .investigate(
            Evidence.of(EVENT, SIZE, rank, 0, false), RANKS, Time.SYSTEM.deadline(times.finding()));
  }

  @Test
  void oneRankReadsTheAnswersAndTheOthersItsFinding() {
    RANKS.forEach(rank -> answer(rank, 5));
    Evidence first = investigate(1, PATIENT);
    assertThat(calls).containsExactly("check", "check", "multiGet", "compareSet");
    assertThat(first.adopted()).isNull();
    assertThat(first.answers().keySet()).containsExactlyElementsOf(RANKS);
    assertThat(Blame.judge(first).failedRank()).isEqualTo(5);
    calls.clear();
    Evidence second = investigate(2, PATIENT);
    assertThat(calls).containsExactly("get");
    assertThat(Blame.judge(second)).isEqualTo(Blame.judge(first));
  }

  @Test
  void theOthersAskIfTheRankThatReportedIsSilent() {
    RANKS.stream().filter(rank -> rank != 1).forEach(rank -> answer(rank, -1));
    new JobBoard(store, 1, TIMES, Time.SYSTEM).join();
    Evidence found = investigate(2, TIMES);
    assertThat(found.silent()).containsExactly(1);
    assertThat(Blame.judge(found).text()).isEqualTo("no data; rank 1 does not answer");
    assertThat(investigate(3, TIMES).adopted()).isEqualTo(Blame.find(found));
  }

  @Test
  void aRankThatNeverJoinedIsNotWaitedFor() {
    RANKS.stream().filter(rank -> rank != 4).forEach(rank -> answer(rank, -1));
    Evidence found = investigate(1, PATIENT);
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
    Evidence found =
        board(1, PATIENT)
            .investigate(
                Evidence.of(event, SIZE, 1, 0, false),
                RANKS,
                Time.SYSTEM.deadline(PATIENT.finding()));
    assertThat(found.answers().keySet()).containsExactly(1, 2);
    assertThat(Blame.judge(found).text()).isEqualTo("no data; rank 2 did not send in time");
  }
}
