package dev.tutti.fake.simulation;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * What goes wrong in a {@link SimulatedWorld}, and when.
 *
 * @param faults the faults, in any order
 */
public record FaultPlan(List<Fault> faults) {
  /** A plan without faults. */
  public static final FaultPlan NONE = new FaultPlan(List.of());

  /** The kinds of faults. */
  public enum Kind {
    /** The rank's process ends; its peers and the store see its connections end. */
    CRASH,
    /** No thread of the rank's process runs for some time, while its connections stay open. */
    PAUSE,
    /** Messages between the rank's process and the store are lost for some time. */
    CUT_OFF,
    /** All connections of the rank's host break, on both sides. */
    RESET,
    /** All that the rank's host and those of other ranks send each other is lost for some time. */
    SEPARATE
  }

  /** What happens to ranks that communicate without channels. */
  private static final List<Kind> WITHOUT_CHANNELS = List.of(Kind.CRASH, Kind.PAUSE, Kind.CUT_OFF);

  /**
   * A fault.
   *
   * @param kind what happens
   * @param rank the rank to which it happens
   * @param at when it begins, from the start of the world
   * @param length how long it lasts; without meaning for a crash
   */
  public record Fault(Kind kind, int rank, Duration at, Duration length) {}

  /** Copies the list. */
  public FaultPlan {
    faults = List.copyOf(faults);
  }

  /**
   * Makes a plan at random for ranks that communicate by channels.
   *
   * @param random decides
   * @param size the number of ranks
   * @param most the maximum number of faults
   * @param within the time in which they begin
   */
  public static FaultPlan ofChannels(SplittableRandom random, int size, int most, Duration within) {
    return random(random, size, most, within, List.of(Kind.values()));
  }

  /**
   * Makes a plan at random for ranks that communicate without channels.
   *
   * @param random decides
   * @param size the number of ranks
   * @param most the maximum number of faults
   * @param within the time in which they begin
   */
  public static FaultPlan random(SplittableRandom random, int size, int most, Duration within) {
    return random(random, size, most, within, WITHOUT_CHANNELS);
  }

  private static FaultPlan random(
      SplittableRandom random, int size, int most, Duration within, List<Kind> kinds) {
    List<Fault> faults = new ArrayList<>();
    int count = random.nextInt(most + 1);
    for (int i = 0; i < count; i++) {
      faults.add(
          new Fault(
              kinds.get(random.nextInt(kinds.size())),
              random.nextInt(size),
              Duration.ofNanos(random.nextLong(within.toNanos())),
              Duration.ofMillis(random.nextLong(20_000))));
    }
    return new FaultPlan(faults);
  }
}
