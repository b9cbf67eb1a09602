package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.Notice;
import dev.tutti.spi.NanoClock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * The heartbeat of a launcher whose nodes come and go, which declares others gone that are silent.
 * Used by one thread.
 */
final class NodePulse {
  private final Store store;
  private final NodeLog log;
  private final Duration silence;
  private final Heartbeat heartbeat;

  /**
   * Creates it.
   *
   * @param store the store of the launchers, for waits
   * @param log the log of the nodes
   * @param launcher the name of this launcher
   * @param silence how long a launcher may give no sign of life
   */
  NodePulse(Store store, NodeLog log, String launcher, Duration silence, NanoClock clock) {
    this.store = store;
    this.log = log;
    this.silence = silence;
    this.heartbeat = new Heartbeat(store, launcher, silence, clock);
  }

  /** Shows that this launcher is alive, reads the log, and declares one gone that is silent. */
  void beat() {
    log.read();
    Optional<String> silent = heartbeat.beat(log.look(NodeRoster::launchers));
    if (silent.isPresent()) {
      String name = silent.get();
      String why = "its launcher has sent no heartbeat for " + Notice.inWords(silence);
      log.look(roster -> roster.nodeOf(name))
          .ifPresent(
              node -> {
                NodeEvent gone = new NodeEvent.Gone(node, name, why);
                boolean _ = log.append(gone, roster -> roster.has(node, name));
              });
    }
  }

  /** Returns whether another launcher was alive after the first look at it. */
  boolean isAlive(String launcher) {
    return heartbeat.isAlive(launcher);
  }

  /** Waits for an entry of the log; returns whether it is there. */
  boolean awaitEntry(String key, Duration atMost) {
    try {
      store.await(List.of(key), atMost);
      return true;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }
}
