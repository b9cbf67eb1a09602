package dev.tutti.cli.status;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Shows what ranks answered whose steps took known times. */
class JobViewTest {
  private static final int STEPS = 50;
  private static final long MILLI = 1_000_000;

  /** Returns an all-reduce that a rank called and left at given times. */
  private static Map<String, Object> step(long number, long from, long to) {
    return Map.ofEntries(
        Map.entry("process_group", List.of("0", "default_pg")),
        Map.entry("collective_seq_id", number),
        Map.entry("profiling_name", "gloo:all_reduce"),
        Map.entry("input_sizes", List.of(List.of(1L))),
        Map.entry("input_dtypes", List.of("Float")),
        Map.entry("state", "completed"),
        Map.entry("time_created_ns", from),
        Map.entry("time_discovered_completed_ns", to),
        Map.entry("retired", true),
        Map.entry("is_p2p", false));
  }

  /** Returns the answer of one of three ranks, the last of which is late by 20 ms, or others. */
  private static RankAnswer answer(int rank) {
    List<Object> entries = new ArrayList<>();
    for (int i = 1; i <= STEPS; i++) {
      int late = i % 5 == 0 ? 0 : 2;
      long lag = late == 0 ? MILLI : 20 * MILLI;
      long begun = 100L * i * MILLI + (rank == late ? lag : 0);
      entries.add(step(i, begun, 100L * i * MILLI + lag + MILLI));
    }
    return new RankAnswer(rank, 3, "host/" + rank, List.of(), Map.of("entries", entries));
  }

  @Test
  void theRankThatIsMostlyLastIsShownWithItsLag() {
    SortedMap<Integer, RankAnswer> answers = new TreeMap<>();
    for (int rank = 0; rank < 3; rank++) {
      answers.put(rank, answer(rank));
    }
    JobView view = new JobView(answers, new TreeMap<>());
    assertThat(view.isTroubled()).isFalse();
    assertThat(view.lines().stream().map(line -> line.strip().split(" {2,}")))
        .satisfiesExactly(
            head -> assertThat(head).containsSubsequence("last", "lag"),
            first -> assertThat(first).containsSequence("10/50", "1.0 ms"),
            second -> assertThat(second).containsSequence("0/50", "0.0 ms"),
            third -> assertThat(third).containsSequence("40/50", "20.0 ms"));
  }
}
