package dev.tutti.cli.status;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.FaultPlan;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.runtime.failure.JobVerdict.State;
import dev.tutti.runtime.status.StatusQuery;
import dev.tutti.runtime.view.JobView;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what status says of a job in which a process has taken the place of a lost rank. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ReplacedRankTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 10);
  private static final Duration CRASH = Duration.ofSeconds(2);
  private static final Duration JOIN = Duration.ofSeconds(4);
  private static final Duration REPLACED = Duration.ofSeconds(8);
  private static final Duration SECOND_CRASH = Duration.ofSeconds(10);
  private static final Duration STUCK = Duration.ofSeconds(15);
  private static final Duration END = Duration.ofSeconds(20);

  /** What an operator saw in a world. */
  private static final class Seen {
    private final List<JobView> views = new ArrayList<>();

    /** Lets an operator ask at three moments, twice through the same inquiry. */
    GroupOptions take(GroupOptions options) {
      if (options.rank().orElse(-1) == 0) {
        Thread _ = options.time().start("operator", () -> ask(options));
      }
      return options;
    }

    private void ask(GroupOptions options) {
      SimulatedWorld.sleep(CRASH.dividedBy(2));
      try (StatusQuery query = query(options, false)) {
        read(query);
        SimulatedWorld.sleep(REPLACED.minus(CRASH.dividedBy(2)));
        read(query);
      }
      SimulatedWorld.sleep(STUCK.minus(REPLACED));
      try (StatusQuery query = query(options, true)) {
        read(query);
      }
    }

    private static StatusQuery query(GroupOptions options, boolean once) {
      return StatusQuery.of(options.store().orElseThrow(), once, options.time()).orElseThrow();
    }

    private void read(StatusQuery query) {
      views.add(JobView.of(query, Duration.ofSeconds(1)));
    }
  }

  /** Reduces to the end, and continues with other members, but not after the second crash. */
  private static void run(ProcessGroup first) {
    ProcessGroup group = first;
    for (int step = 0; step < END.toMillis() / 100; step++) {
      SimulatedWorld.sleep(Duration.ofMillis(100));
      try {
        Tensor newcomers = Tensor.of((long) group.newcomers());
        group.allReduce(newcomers);
        group = newcomers.getLong(0) > 0 ? group.grow(1) : group;
      } catch (CollectiveException e) {
        group = group.name().equals("0") ? group.shrink() : group;
      }
    }
    group.close();
  }

  private static List<String> ranks(JobView view) {
    List<String> all = new ArrayList<>();
    for (Object each : (Iterable<?>) view.toMap().get("ranks")) {
      Map<?, ?> rank = (Map<?, ?>) each;
      all.add(rank.get("rank") + " " + rank.get("state"));
    }
    return all;
  }

  @Test
  void theMembersOfTheCurrentGenerationAreTheJob() {
    for (long seed = 0; seed < SEEDS; seed++) {
      Seen seen = new Seen();
      var outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .withJoiners(List.of(JOIN))
              .withFaults(
                  new FaultPlan(
                      List.of(
                          new Fault(Kind.CRASH, 1, CRASH, Duration.ZERO),
                          new Fault(Kind.CRASH, 3, SECOND_CRASH, Duration.ZERO))))
              .withOptions(seen::take)
              .run(ReplacedRankTest::run);
      String what = "seed %d, %s".formatted(seed, outcome);
      assertThat(seen.views).as(what).hasSize(3);
      JobView before = seen.views.get(0);
      assertThat(before.verdict().text()).as(what).isEqualTo("healthy");
      assertThat(ranks(before)).containsExactly("0 alive", "1 alive", "2 alive");
      JobView replaced = seen.views.get(1);
      assertThat(replaced.verdict().text()).as(what).isEqualTo("healthy");
      assertThat(ranks(replaced)).containsExactly("0 alive", "2 alive", "3 alive");
      JobView lost = seen.views.get(2);
      assertThat(lost.verdict().state()).as(what).isEqualTo(State.FAILED);
      assertThat(lost.verdict().rank()).as(what).isEqualTo(3);
      assertThat(lost.verdict().text()).as(what).startsWith("group 0~").contains("rank 2 is gone");
      assertThat(ranks(lost)).containsExactly("0 alive", "2 alive", "3 does not answer");
    }
  }
}
