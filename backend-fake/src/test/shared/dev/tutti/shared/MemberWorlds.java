package dev.tutti.shared;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.BackendException;
import dev.tutti.CollectiveException;
import dev.tutti.RendezvousException;
import dev.tutti.StoreException;
import dev.tutti.TooFewRanksException;
import dev.tutti.fake.simulation.FaultPlan;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.LongToIntFunction;
import java.util.stream.Stream;

/** Simulated worlds whose processes crash, stand still, lose the store, and join, by a seed. */
public final class MemberWorlds {
  private MemberWorlds() {}

  /**
   * Returns the world of a seed: 2 to 4 ranks, up to 2 joiners and up to 3 faults.
   *
   * @param joins when joiners have come at the latest
   * @param faults when faults have begun at the latest
   */
  public static SimulatedWorld of(long seed, Duration timeout, Duration joins, Duration faults) {
    SplittableRandom random = new SplittableRandom(seed);
    int size = 2 + random.nextInt(3);
    List<Duration> joiners = new ArrayList<>();
    for (int i = random.nextInt(3); i > 0; i--) {
      joiners.add(Duration.ofMillis(random.nextInt((int) joins.toMillis())));
    }
    FaultPlan plan = FaultPlan.random(random, size + joiners.size(), 3, faults);
    return SimulatedWorld.of(size)
        .withSeed(seed)
        .withTimeout(timeout)
        .withFaults(plan)
        .withJoiners(joiners);
  }

  /**
   * Checks worlds one after the other, and adds up what their checks return.
   *
   * @throws AssertionError naming the seed of the first one that fails
   */
  public static int sum(int first, int seeds, LongToIntFunction check) {
    int sum = 0;
    for (long seed = first; seed < (long) first + seeds; seed++) {
      try {
        sum += check.applyAsInt(seed);
      } catch (RuntimeException | Error e) {
        throw new AssertionError(
            "seed %d; to run it again: -Dtutti.firstSeed=%1$d -Dtutti.seeds=1".formatted(seed), e);
      }
    }
    return sum;
  }

  /** Returns words for an outcome of a world. */
  public static String describe(SimulatedWorld world, Outcome outcome) {
    return "seed %d, %s, %s: %s".formatted(world.seed(), world.plan(), world.joiners(), outcome);
  }

  /**
   * Checks that processes end as members of a job may: if others only crash, ranks end well.
   *
   * @param further how processes may fail, too
   */
  public static void requireProperEnds(
      SimulatedWorld world, Outcome outcome, List<Class<?>> further) {
    String what = describe(world, outcome);
    Class<?>[] proper =
        Stream.concat(
                Stream.<Class<?>>of(
                    RendezvousException.class,
                    TooFewRanksException.class,
                    StoreException.class,
                    BackendException.class,
                    CollectiveException.class),
                further.stream())
            .toArray(Class<?>[]::new);
    for (RankEnd end : outcome.ends()) {
      if (end.failure() != null) {
        assertThat(end.failure()).as(what).isInstanceOfAny(proper);
      }
    }
    if (isCrashOnly(world)) {
      outcome.ends().stream()
          .filter(end -> !end.crashed() && end.rank() < world.size())
          .forEach(end -> assertThat(end.failure()).as(what).isNull());
    }
  }

  /** Returns whether processes crash, and have no other fault. */
  public static boolean isCrashOnly(SimulatedWorld world) {
    return world.plan().faults().stream().map(Fault::kind).allMatch(Kind.CRASH::equals);
  }
}
