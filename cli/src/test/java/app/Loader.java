package app;

import dev.tutti.fake.simulation.SimulatedWorld;
import java.time.Duration;

/** What a user's program does between two operations, in a simulation. */
public final class Loader {
  private Loader() {}

  /**
   * Waits for data.
   *
   * @param wait how long, in simulated time
   */
  public static void next(Duration wait) {
    SimulatedWorld.sleep(wait);
  }
}
