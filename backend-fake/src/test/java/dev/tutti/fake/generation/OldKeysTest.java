package dev.tutti.fake.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what a job that changes again and again leaves in its store. */
@Isolated("threads of other tests in shared locks would bring in real time")
class OldKeysTest {
  private static final ThreadedProvider THREADED = new ThreadedProvider();
  private static final int ROUNDS = 50;
  private static final Duration SETTLED = Duration.ofSeconds(30);

  private static void sum(ProcessGroup group) {
    Tensor tensor = Tensor.of(1f);
    group.allReduce(tensor);
    assertThat(tensor.getFloat(0)).isEqualTo(group.size());
  }

  private static ProcessGroup withoutFailed(ProcessGroup group) {
    try {
      sum(group);
      throw new AssertionError("nobody failed");
    } catch (CollectiveException e) {
      Duration before = Simulation.now();
      ProcessGroup next = group.shrink();
      // A member that leaves may say so after the others have looked for it the first time.
      assertThat(Simulation.now().minus(before).toSeconds()).isZero();
      return next;
    }
  }

  /** Lets a process join, reduce and leave, again and again, and fail or divide the group at it. */
  private static void join(HashStore store, AtomicReference<Throwable> failure) {
    try {
      for (int round = 0; round < ROUNDS; round++) {
        GroupOptions options =
            GroupOptions.DEFAULT
                .withStore(store)
                .withProvider(THREADED)
                .withTime(Simulation.time())
                .withTimeout(Duration.ofMinutes(10));
        try (ProcessGroup group = ProcessGroup.join(options)) {
          sum(group);
          sum(group.split(0, 0).orElseThrow());
          group.abort("round " + round + " is over");
        }
      }
    } catch (Throwable e) {
      failure.set(e);
    }
  }

  /**
   * Checks that there are the keys of a fresh group of two, where the log begins, its entries since
   * the generation before, and what members wrote late of that one.
   */
  private static void check(int round, long first, List<String> keys) {
    List<String> expected = new ArrayList<>(List.of("backends", "event/first"));
    List<Long> places = new ArrayList<>();
    List<String> late = new ArrayList<>();
    for (String key : keys) {
      String own = key.substring("tutti/0/".length());
      if (own.matches("event/\\d+")) {
        places.add(Long.valueOf(own.substring("event/".length())));
        expected.add(own);
      } else if (own.matches("(closed|progress|left)/.*")) {
        late.add(own);
      }
    }
    // A process that waits to join may write one entry where the log was, which does not count.
    assertThat(places.stream().filter(place -> place < first)).as("%s", keys).hasSizeLessThan(2);
    places.removeIf(place -> place < first);
    assertThat(places).as("%s", keys).hasSizeBetween(3, 5);
    assertThat(Collections.max(places) - first + 1).as("%s", keys).isEqualTo(places.size());
    expected.addAll(List.of("joined/0", "joined/1"));
    assertThat(late).as("%s", keys).hasSizeLessThanOrEqualTo(5);
    String left = "left/" + (2 + round);
    String before = ".*/0~%d[./].*".formatted(first - 1);
    assertThat(late).as("%s", keys).allMatch(key -> key.equals(left) || key.matches(before));
    expected.addAll(late);
    assertThat(keys.stream().map(key -> key.substring("tutti/0/".length())))
        .containsExactlyInAnyOrderElementsOf(expected);
  }

  @Simulated
  void theNumberOfKeysStaysThatOfAFreshGroup() throws Exception {
    HashStore store = Simulation.store();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    List<List<String>> keys = new ArrayList<>();
    List<Long> firsts = new ArrayList<>();
    Thread _ = Simulation.start("joiner", () -> join(store, failure));
    Simulation.ranks(
        2,
        store,
        THREADED,
        (options, rank) -> {
          ProcessGroup group = ProcessGroup.init(options);
          sum(group);
          for (int round = 0; round < ROUNDS; round++) {
            group = group.grow(1);
            sum(group);
            sum(group.split(0, 0).orElseThrow());
            group = withoutFailed(group);
            if (rank == 0) {
              SimulatedWorld.sleep(SETTLED);
              keys.add(store.listKeys());
              String log = store.getString("tutti/0/event/first");
              firsts.add(Long.valueOf(log.lines().findFirst().orElseThrow()));
            }
            group.barrier();
          }
          group.close();
          return rank;
        });
    assertThat(failure.get()).isNull();
    for (int round = 0; round < ROUNDS; round++) {
      check(round, firsts.get(round), keys.get(round));
    }
  }
}
