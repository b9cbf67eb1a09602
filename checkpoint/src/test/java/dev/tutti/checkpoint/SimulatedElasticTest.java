package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.shared.MemberWorlds;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Runs elastic jobs while processes crash, stand still, lose the store, and join: whoever comes to
 * the end has done each step once. {@code -Dtutti.seeds=100000} sets how many worlds there are,
 * {@code -Dtutti.firstSeed=…} with which seed they begin.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedElasticTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 30);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);
  private static final Duration TIMEOUT = Duration.ofSeconds(8);
  private static final Duration PATIENCE = Duration.ofSeconds(40);
  private static final long STEPS = 100;

  /** What the processes of a world did. */
  private static final class Seen {
    /** The options with which a process joins. */
    private static final ThreadLocal<GroupOptions> GIVEN = new ThreadLocal<>();

    private final List<String> ends = new ArrayList<>();
    private long most;
    private long longest;
    private int generations;

    GroupOptions take(GroupOptions options) {
      GIVEN.set(options);
      return options;
    }

    void run(ProcessGroup group) throws Exception {
      ElasticOptions options =
          ElasticOptions.DEFAULT.withGroup(GIVEN.get()).withTimeout(TIMEOUT).withPatience(PATIENCE);
      Sums sums = new Sums();
      Elastic.run(group, options, generation -> run(generation, sums));
      ends.add(sums.toString());
    }

    private void run(ElasticGeneration generation, Sums sums) {
      generations++;
      ProcessGroup group = generation.group();
      long step = generation.restore(sums.contents());
      assertThat(sums).asString().isEqualTo(Sums.after(step).toString());
      longest = Math.max(longest, most - step);
      for (; step < STEPS; step++) {
        SimulatedWorld.sleep(Duration.ofMillis(200));
        sums.step(group, step);
        generation.commit(step + 1);
        most = Math.max(most, step + 1);
      }
    }
  }

  private static Outcome run(SimulatedWorld world, Seen seen) {
    return world.withOptions(seen::take).run(seen::run);
  }

  private static SimulatedWorld world(long seed) {
    return MemberWorlds.of(seed, TIMEOUT, Duration.ofSeconds(15), Duration.ofSeconds(20));
  }

  @Test
  void eachStepIsDoneOnceAndASeedRepeatsIt() {
    int generations = MemberWorlds.sum(FIRST, SEEDS, SimulatedElasticTest::check);
    assertThat(generations).as("generations, of all ranks").isGreaterThan(4 * SEEDS);
  }

  private static int check(long seed) {
    SimulatedWorld world = world(seed);
    Seen seen = new Seen();
    Outcome outcome = run(world, seen);
    String what = MemberWorlds.describe(world, outcome);
    MemberWorlds.requireProperEnds(world, outcome, List.of());
    assertThat(seen.ends).as(what).allMatch(Sums.after(STEPS).toString()::equals);
    assertThat(seen.longest).as("steps that were lost; %s", what).isLessThanOrEqualTo(1);
    Outcome again = run(world, new Seen());
    assertThat(again.hash()).as("seed %d", seed).isEqualTo(outcome.hash());
    return seen.generations;
  }
}
