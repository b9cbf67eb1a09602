package dev.tutti.fake.simulation;

import dev.tutti.store.table.KeyTable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;

/** The server of a simulated store: a table of keys at the end of a modelled network. */
final class SimulatedServer {
  /*
   * A request reaches the table after a delay, and the reply its caller after another. What the
   * table does, timers do on the carrier, so no lock is shared between processes, and a process
   * that crashes in a call leaves nothing behind but a request that was or was not applied.
   */
  /** After what time the server sees that a process has ended. */
  private static final long DEATH_NANOS = 50_000_000;

  final KeyTable table = new KeyTable();
  final SimulatedScheduler scheduler;
  private final SimulatedProcess process;
  private final Delays delays;
  private final Map<SimulatedProcess, Will> wills = new LinkedHashMap<>();

  /** What is to be written when a process ends. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Will(String log, byte[] value) {}

  SimulatedServer(SimulatedScheduler scheduler, SplittableRandom random) {
    this.scheduler = scheduler;
    this.delays = new Delays(random);
    this.process = new SimulatedProcess(scheduler, "store");
  }

  SimulatedProcess process() {
    return process;
  }

  /** Returns how long a message takes; seldom very long. */
  long delayNanos() {
    return delays.nextNanos();
  }

  void leaveWill(SimulatedProcess of, String log, byte[] value) {
    wills.put(of, new Will(log, value.clone()));
  }

  void dropWill(SimulatedProcess of) {
    wills.remove(of);
  }

  /** Carries out the will of a process that has ended, as soon as the server sees that. */
  void died(SimulatedProcess of) {
    Will will = wills.remove(of);
    if (will != null) {
      var _ = scheduler.at(scheduler.nowNanos() + DEATH_NANOS, process, () -> carryOut(will));
    }
  }

  private void carryOut(Will will) {
    table.set(will.log + table.nextOf(will.log, 1), will.value);
  }
}
