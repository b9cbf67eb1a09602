package dev.tutti.store.tcp;

import dev.tutti.spi.NanoClock;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the clients that are to do something in time: strangers, which have not shown what they
 * are, and clients that have not read their replies.
 */
final class AwaitedClients {
  /** In the order in which they came; some may have shown what they are since then. */
  private final SequencedSet<ServerConnection> strangers = new LinkedHashSet<>();

  private final Set<ServerConnection> stuck = new LinkedHashSet<>();
  private final NanoClock clock;
  private long lookedAt;

  AwaitedClients(NanoClock clock) {
    this.clock = clock;
  }

  /** Notes that the server looks for input now. */
  void look() {
    if (!strangers.isEmpty()) {
      lookedAt = clock.nanoTime();
    }
  }

  boolean isEmpty() {
    return strangers.isEmpty() && stuck.isEmpty();
  }

  void addStranger(ServerConnection client) {
    strangers.add(client);
  }

  void remove(ServerConnection client) {
    stuck.remove(client);
    strangers.remove(client);
  }

  /** Returns the stranger that came first; null if there is none. */
  @Nullable ServerConnection eldestStranger() {
    while (!strangers.isEmpty() && !strangers.getFirst().isStranger()) {
      strangers.removeFirst();
    }
    return strangers.isEmpty() ? null : strangers.getFirst();
  }

  /**
   * Returns a stranger that came longer ago than a limit; null if there is none. Its age counts up
   * to the last look for input, because a server that stood still has not read what came in the
   * meantime.
   */
  @Nullable ServerConnection silentStranger(long nanos) {
    ServerConnection eldest = eldestStranger();
    return eldest != null && lookedAt - eldest.cameAt > nanos ? eldest : null;
  }

  /**
   * Notes how far a client has read its replies.
   *
   * @param all whether it has read all
   * @param some whether it has read some since the last time
   */
  void noteReplies(ServerConnection client, boolean all, boolean some) {
    if (all && client.stuckSince != 0) {
      client.stuckSince = 0;
      stuck.remove(client);
    } else if (!all && (some || client.stuckSince == 0)) {
      client.stuckSince = clock.nanoTime() | 1;
      stuck.add(client);
    }
  }

  /**
   * Returns a client that has not read any of its replies for longer than a limit; null if there is
   * none.
   */
  @Nullable ServerConnection stuckClient(long nanos) {
    long now = stuck.isEmpty() ? 0 : clock.nanoTime();
    for (ServerConnection client : stuck) {
      if (now - client.stuckSince > nanos) {
        return client;
      }
    }
    return null;
  }
}
