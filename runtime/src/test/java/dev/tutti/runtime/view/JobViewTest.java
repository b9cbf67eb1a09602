package dev.tutti.runtime.view;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import dev.tutti.runtime.view.JobRecords.Taken;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Judges jobs of which single facts are known. */
class JobViewTest {
  private static final int SIZE = 3;
  private static final long MILLI = 1_000_000;

  /** The last rank of the job. */
  private static final int LAST = SIZE - 1;

  private final SortedMap<Integer, Map<?, ?>> answers = new TreeMap<>();
  private final SortedMap<Integer, Silence> silent = new TreeMap<>();
  private final JobRecords records = JobRecords.empty();

  /** Lets a rank answer that it waits in its last collective, or in none. */
  private void answer(int rank, long issued, double waitedMillis, String failure) {
    Pending op = new Pending(OpType.ALL_REDUCE, issued, -1, 0);
    List<Pending> pending = waitedMillis < 0 ? List.of() : List.of(op);
    Map<String, Object> group =
        Map.of(
            "name", "0",
            "ranks", IntStream.range(0, SIZE).boxed().toList(),
            "failure", failure,
            "progress", RankProgress.ofCalls(List.of(call(issued, 1)), pending).encode(),
            "pending",
                pending.stream()
                    .map(
                        _ ->
                            Map.of(
                                "operation",
                                "allReduce",
                                "number",
                                issued,
                                "waited_ms",
                                waitedMillis))
                    .toList());
    answers.put(rank, Map.of("rank", rank, "host", "h", "pid", 7, "groups", List.of(group)));
  }

  private static Issued call(long sequence, long elements) {
    return new Issued(OpType.ALL_REDUCE, sequence, "SUM", "float32", elements, -1, "");
  }

  private JobVerdict verdict() {
    return JobView.of(answers, silent, null).verdict();
  }

  /** Records that ranks reduced, from a time until another, in milliseconds. */
  private void record(int rank, long sequence, double from, double to) {
    records.add(
        new RankOperation(
            rank,
            "0",
            call(sequence, 1),
            -1,
            0,
            "",
            true,
            (long) (from * MILLI),
            (long) (to * MILLI),
            false));
  }

  /** Records steps of 100 ms to which the last rank comes late. */
  private JobView late(int steps, double lateMillis) {
    for (int step = 1; step <= steps; step++) {
      for (int rank = 0; rank < SIZE; rank++) {
        double end = 100 * step + lateMillis;
        record(rank, step, rank == LAST ? end - 0.1 : 100 * step, end);
      }
    }
    return JobView.of(records);
  }

  @ParameterizedTest
  @CsvSource({"5000, SLOW, 5.0 s", "29999, SLOW, 30 s", "30000, HUNG, 30 s"})
  void aWaitIsJudgedByItsLength(double millis, State state, String time) {
    answer(0, 7, 4999, "");
    answer(1, 7, 0, "");
    answer(LAST, 6, -1, "");
    assertThat(verdict()).isEqualTo(JobVerdict.HEALTHY);
    answer(0, 7, millis, "");
    String text =
        "rank 2 is %s: it has not called allReduce #7, which 2 of 3 ranks called %s ago"
            .formatted(state.label(), time);
    assertThat(verdict()).isEqualTo(new JobVerdict(state, LAST, text));
  }

  @Test
  void aWaitThatNobodyKeepsIsHungOnlyAfterLong() {
    IntStream.range(0, SIZE).forEach(rank -> answer(rank, 7, 20_000, ""));
    assertThat(verdict()).isEqualTo(JobVerdict.HEALTHY);
    IntStream.range(0, SIZE).forEach(rank -> answer(rank, 7, 40_000, ""));
    assertThat(verdict())
        .isEqualTo(
            new JobVerdict(
                State.HUNG,
                -1,
                "hung: rank 0 has waited for 40 s in allReduce #7; all ranks have called it by"
                    + " now"));
  }

  @Test
  void aRankThatDoesNotAnswerIsHung() {
    answer(0, 7, -1, "");
    answer(1, 7, -1, "");
    silent.put(LAST, Silence.NO_ANSWER);
    assertThat(verdict().text()).isEqualTo("rank 2 is hung: it does not answer");
    answer(0, 7, 61_000, "");
    assertThat(verdict().text())
        .isEqualTo(
            "rank 2 is hung: rank 0 has waited for 61 s in allReduce #7; rank 2 does not answer");
    assertThat(JobView.of(answers, silent, null).lines())
        .contains(
            "",
            "2     does not answer  -      -              -     -          -     -       -       "
                + " -");
  }

  @Test
  void aRankThatLeftOrHasNotJoinedIsNotHung() {
    answer(0, 7, -1, "");
    silent.put(1, Silence.LEFT);
    silent.put(LAST, Silence.NOT_JOINED);
    assertThat(verdict()).isEqualTo(JobVerdict.HEALTHY);
  }

  @Test
  void aFailureCountsBeforeAllElse() {
    answer(0, 7, 61_000, "");
    answer(1, 7, -1, "rank 2 is gone");
    assertThat(verdict().text()).isEqualTo("group 0 failed: rank 2 is gone");
    JobVerdict told = new JobVerdict(State.FAILED, LAST, "rank 2 is gone, as detected by rank 1");
    assertThat(JobView.of(answers, silent, told).verdict()).isEqualTo(told);
  }

  @ParameterizedTest
  @CsvSource({"5, 20, SLOW", "4, 20, HEALTHY", "50, 9, HEALTHY", "50, 12, SLOW"})
  void aRankIsSlowIfTheOthersWaitForItOftenAndLong(int steps, double lateMillis, State state) {
    JobVerdict verdict = late(steps, lateMillis).verdict();
    assertThat(verdict.state()).isEqualTo(state);
    if (state == State.SLOW) {
      assertThat(verdict.rank()).isEqualTo(LAST);
      assertThat(verdict.text())
          .matches(
              "rank 2 is slow: last in %d of %1$d, others waited .* for it \\(\\d+ %% of the job\\)"
                  .formatted(steps));
    }
  }

  @Test
  void waitsForAllRanksInTurnAreHealthy() {
    for (int step = 1; step <= 60; step++) {
      for (int rank = 0; rank < SIZE; rank++) {
        record(rank, step, 100 * step + (rank == step % SIZE ? 50 : 0), 100 * step + 51);
      }
    }
    assertThat(JobView.of(records).verdict()).isEqualTo(JobVerdict.HEALTHY);
  }

  @Test
  void pausesThatExplainHalfOfTheLagAreTheReason() {
    for (int step = 1; step <= 20; step++) {
      records.pauses().add(new Pause(LAST, 100L * step * MILLI, (100L * step + 12) * MILLI, "GC"));
    }
    assertThat(late(20, 20).verdict().text())
        .startsWith(
            "rank 2's JVM was paused for 240 ms (20 times, at most 12 ms): GC, before allReduce #");
  }

  /** A running JVM knows only the last pause of each collector. */
  @ParameterizedTest
  @CsvSource({"7, rank 2's JVM was paused for 190 ms: GC", "40, rank 2 is slow: last in 30 of 30"})
  void theLastPauseExplainsWaitsThatAreAsLong(double otherLagMillis, String verdict) {
    for (int step = 1; step <= 30; step++) {
      double end = 200 * step + (step % 10 == 0 ? 200 : otherLagMillis);
      for (int rank = 0; rank < SIZE; rank++) {
        record(rank, step, rank == LAST ? end - 0.1 : 200 * step, end);
      }
    }
    records.pauses().add(new Pause(LAST, 6005 * MILLI, 6195 * MILLI, "GC"));
    assertThat(JobView.of(records).verdict().text()).startsWith(verdict);
  }

  /** Such a rank does not look at its clock, so it records the time of its first step for all. */
  @Test
  void aRankThatNeverWaitsCameWhenTheFirstOfTheOthersEnded() {
    for (int step = 1; step <= 20; step++) {
      record(0, step, 100 * step, 100 * step + 60);
      record(1, step, 100 * step + 1, 100 * step + 61);
      record(LAST, step, 1, 0);
    }
    record(LAST, 21, 1, 0);
    JobView slow = JobView.of(records);
    assertThat(slow.verdict().text())
        .isEqualTo(
            "rank 2 is slow: last in 20 of 20, others waited 1.2 s for it (61 % of the job)");
    assertThat(records.operations().get(LAST))
        .extracting(call -> slow.lags().micros(call))
        .isEqualTo(
            IntStream.rangeClosed(1, 21)
                .mapToObj(step -> (100.0 * Math.min(step, 20) - 40) * 1000)
                .toList());
    records.pauses().add(new Pause(LAST, 1010 * MILLI, 1060 * MILLI, "GC"));
    assertThat(JobView.of(records).lags().heldUp())
        .extracting(held -> held.call().call().sequence())
        .containsExactly(10L);
  }

  @Test
  void aRankWithoutARecordIsNamed() {
    records.addGroup("0", List.of(0, 1, 2));
    record(0, 1, 0, 1);
    record(1, 1, 0, 1);
    assertThat(JobView.of(records).verdict().text()).isEqualTo("rank 2 left no record");
    assertThat(JobView.of(records).problems()).isEmpty();
  }

  @Test
  void anOperationThatHasNotEndedCountsAsWaiting() {
    records.addGroup("0", List.of(0, 1));
    for (int rank = 0; rank < 2; rank++) {
      records.taken().put(rank, new Taken(Duration.ofSeconds(65).toNanos(), 0));
      record(rank, 1, 1000, 1001);
    }
    records.add(
        new RankOperation(
            0, "0", call(2, 1), -1, 0, "", false, Duration.ofSeconds(5).toNanos(), 0, false));
    JobView view = JobView.of(records);
    assertThat(view.verdict().text())
        .isEqualTo(
            "rank 1 is hung: it has not called allReduce #2, which 1 of 2 ranks called 60 s ago");
    Lags.Lag waiting = view.lags().of(0);
    assertThat(waiting.waitingNanos()).isEqualTo(Duration.ofSeconds(60).toNanos());
    assertThat(waiting.spanNanos).isEqualTo(Duration.ofSeconds(64).toNanos());
    assertThat(view.lags().of(1).waitingNanos()).isZero();
  }
}
