package dev.tutti.fake;

import dev.tutti.fake.simulation.Simulation;
import java.time.Duration;

/** Static methods for worlds on busy machines. */
final class Worlds {
  /** The deadline of worlds that do not exceed it. */
  static final Duration PATIENCE = Duration.ofMinutes(4);

  private Worlds() {}

  /** Creates a world whose ranks have minutes. */
  static ThreadedWorld patient(int size) {
    return ThreadedWorld.of(size).withTimeout(PATIENCE);
  }

  /** Creates a world of a simulation whose ranks have minutes. */
  static ThreadedWorld simulated(int size) {
    return patient(size).withTime(Simulation.time());
  }

  /** Runs a body once on each rank of a world whose ranks have minutes. */
  static void run(int size, RankBody body) {
    patient(size).run(body);
  }
}
