package dev.tutti.fake.simulation;

import java.io.IOException;
import java.nio.channels.Channel;

/** A channel of a simulated host. */
interface SimulatedChannel extends Channel {
  /** Returns the operations that would not block now, as bits of a selection key. */
  int readyOps();

  /** Returns who waits for the channel. */
  Watchers watchers();

  /** Ends the channel as the system does when the process has ended. */
  void processEnded() throws IOException;
}
