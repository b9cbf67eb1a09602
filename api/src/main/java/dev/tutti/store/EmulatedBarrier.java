package dev.tutti.store;

import dev.tutti.StoreException;
import dev.tutti.store.internal.Arguments;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/** Makes a barrier of the queries that every server of PyTorch's has. */
final class EmulatedBarrier {
  /*
   * One key holds "round arrived size token". A member arrives by a compare-and-set that counts itself;
   * the token makes each state new, so that a compare-and-set that succeeded cannot be mistaken. The last
   * member starts the next round and then sets the key of its own round, for which the others wait. Who
   * gives up takes itself off again, unless the round has ended meanwhile: then all came.
   *
   * All members of a round have left the one before, so its key is deleted with the new round.
   */
  private static final String PREFIX = "tutti/barrier";

  private final TcpClient client;
  private final Dialect dialect;
  private final String key;
  private final int size;
  private final String stateKey;

  EmulatedBarrier(TcpClient client, Dialect dialect, String key, int size) {
    this.client = client;
    this.dialect = dialect;
    this.key = key;
    this.size = size;
    // The key has its slash.
    this.stateKey = PREFIX + key;
  }

  /** Waits; returns 0 if all came, else how many had come at the deadline. */
  int await(long nanos) {
    long deadline = Arguments.deadline(nanos);
    State joined = join(deadline);
    if (joined.arrived == 0) {
      release(joined.round - 1, deadline - System.nanoTime());
      return 0;
    }
    boolean came = false;
    try {
      long left = deadline - System.nanoTime();
      came = nanos > 0 && dialect.look(List.of(releaseKey(joined.round)), left);
    } catch (StoreException e) {
      leave(joined.round);
      throw e;
    }
    return came ? 0 : leave(joined.round);
  }

  private State join(long deadline) {
    while (true) {
      State now = read(deadline - System.nanoTime());
      if (now.arrived > 0 && now.size != size) {
        throw new StoreException(Arguments.sizeMessage(key.substring(1), now.size, size));
      }
      State next =
          now.arrived + 1 == size ? state(now.round + 1, 0) : state(now.round, now.arrived + 1);
      if (replaced(now, next, deadline - System.nanoTime())) {
        return next;
      }
    }
  }

  private int leave(long round) {
    while (true) {
      State now = read(0);
      if (now.round != round) {
        return 0;
      }
      if (replaced(now, state(round, now.arrived - 1), 0)) {
        return now.arrived;
      }
    }
  }

  private void release(long round, long nanos) {
    client.send(
        out -> {
          out.putByte((byte) Wire.SET);
          out.putKey(releaseKey(round));
          out.putBytes(new byte[] {'1'});
        });
    client.call(
        nanos,
        (connection, deadline) -> {
          connection.out.putByte((byte) Wire.DELETE_KEY);
          connection.out.putKey(releaseKey(round - 1));
          connection.send(deadline);
          return connection.readLong(deadline);
        });
  }

  private State read(long nanos) {
    byte[] text = RemoteReads.value(client, stateKey, nanos);
    if (text == null) {
      return new State(0, 0, size, Arguments.NO_BYTES);
    }
    String[] parts = new String(text, StandardCharsets.US_ASCII).split(" ", -1);
    return new State(
        Long.parseLong(parts[0]), Integer.parseInt(parts[1]), Integer.parseInt(parts[2]), text);
  }

  private State state(long round, int arrived) {
    String text = round + " " + arrived + " " + size + " " + UUID.randomUUID();
    return new State(round, arrived, size, text.getBytes(StandardCharsets.US_ASCII));
  }

  private boolean replaced(State now, State next, long nanos) {
    return client.call(
        nanos,
        (connection, deadline) -> {
          connection.out.putByte((byte) Wire.COMPARE_SET);
          connection.out.putKey(stateKey);
          connection.out.putBytes(now.text);
          connection.out.putBytes(next.text);
          connection.send(deadline);
          return Arrays.equals(connection.readBytes(deadline), next.text);
        });
  }

  private String releaseKey(long round) {
    return stateKey + "/" + round;
  }

  /** Is the state of the barrier; its text is empty before the first member. */
  @SuppressWarnings("ArrayRecordComponent")
  private record State(long round, int arrived, int size, byte[] text) {}
}
