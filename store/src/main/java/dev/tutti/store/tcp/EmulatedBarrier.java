package dev.tutti.store.tcp;

import dev.tutti.StoreException;
import dev.tutti.store.table.Arguments;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;

/** Implements a barrier with the queries that every PyTorch server has. */
final class EmulatedBarrier {
  /*
   * One key holds "round size token member member ...". A member arrives by a compare-and-set that
   * adds a name of its own; the token makes each state unique, so that a successful compare-and-set
   * cannot be mistaken. The last member starts the next round and then sets the key of its own
   * round, for which the others wait. A rank that gives up removes its name again, unless the round
   * has ended in the meantime, in which case all members came.
   *
   * A server that does not answer in time may or may not have carried out the request. The client
   * therefore remembers a name that may have stayed, and its next call at this barrier removes it:
   * otherwise the same round would end one member too early.
   *
   * All members of a round have left the previous round, so that round's key is deleted when the
   * new round starts.
   */
  private static final String STATE = "tutti/barrier";
  private static final String RELEASE = "tutti/barrier-round/";
  private static final int NAME_BITS = 48;
  private static final int FIRST_MEMBER = 3;

  private final TcpClient client;
  private final C10dServerDialect dialect;
  private final String key;
  private final int size;
  private final String stateKey;
  private final String name;

  EmulatedBarrier(TcpClient client, C10dServerDialect dialect, String key, int size) {
    this.client = client;
    this.dialect = dialect;
    this.key = key;
    this.size = size;
    // The key already has its slash.
    this.stateKey = STATE + key;
    name = Long.toHexString(client.time().random() >>> (Long.SIZE - NAME_BITS));
  }

  /**
   * Waits at the barrier; returns 0 if all members came, or else how many had come at the deadline.
   */
  int await(long nanos) {
    long deadline = Arguments.deadline(client.time(), nanos);
    State joined;
    try {
      joined = join(deadline);
    } catch (StoreException e) {
      dialect.mayHaveStayed(stateKey, name);
      throw e;
    }
    if (joined.members.isEmpty()) {
      release(joined.round - 1, deadline - client.time().nanoTime());
      return 0;
    }
    boolean came = false;
    try {
      long left = deadline - client.time().nanoTime();
      came = nanos > 0 && dialect.look(List.of(releaseKey(joined.round)), left);
    } catch (StoreException e) {
      try {
        leave(joined.round);
      } catch (StoreException again) {
        e.addSuppressed(again);
      }
      throw e;
    }
    return came ? 0 : leave(joined.round);
  }

  private State join(long deadline) {
    Set<String> stayed = dialect.mayHaveStayed(stateKey);
    while (true) {
      State now = read(deadline - client.time().nanoTime());
      List<String> members = new ArrayList<>(now.members);
      members.removeAll(stayed);
      if (!members.isEmpty() && now.size != size) {
        throw new StoreException(Arguments.sizeMessage(key.substring(1), now.size, size));
      }
      members.add(name);
      State next =
          members.size() == size ? state(now.round + 1, List.of()) : state(now.round, members);
      if (replaced(now, next, deadline - client.time().nanoTime())) {
        dialect.haveLeft(stateKey, stayed);
        return next;
      }
    }
  }

  private int leave(long round) {
    try {
      while (true) {
        State now = read(0);
        if (now.round != round) {
          return 0;
        }
        List<String> others = new ArrayList<>(now.members);
        others.remove(name);
        if (replaced(now, state(round, others), 0)) {
          return now.members.size();
        }
      }
    } catch (StoreException e) {
      dialect.mayHaveStayed(stateKey, name);
      throw e;
    }
  }

  private void release(long round, long nanos) {
    client.send(Wire.SET, releaseKey(round), new byte[] {'1'});
    client.ask(nanos, Wire.DELETE_KEY, releaseKey(round - 1));
  }

  private State read(long nanos) {
    byte[] text = RemoteReads.value(client, stateKey, nanos);
    if (text == null) {
      return new State(0, size, List.of(), Arguments.NO_BYTES);
    }
    List<String> parts = List.of(new String(text, StandardCharsets.US_ASCII).split(" ", -1));
    return new State(
        Long.parseLong(parts.get(0)),
        Integer.parseInt(parts.get(1)),
        parts.subList(FIRST_MEMBER, parts.size()),
        text);
  }

  private State state(long round, List<String> members) {
    StringBuilder text = new StringBuilder().append(round).append(' ').append(size).append(' ');
    text.append(HexFormat.of().toHexDigits(client.time().random()));
    members.forEach(member -> text.append(' ').append(member));
    return new State(round, size, members, text.toString().getBytes(StandardCharsets.US_ASCII));
  }

  private boolean replaced(State now, State next, long nanos) {
    return client.call(
        nanos,
        (connection, deadline) -> {
          connection.out.putQuery(Wire.COMPARE_SET, stateKey);
          connection.out.putBytes(now.text);
          connection.out.putBytes(next.text);
          connection.send(deadline);
          return Arrays.equals(connection.readBytes(deadline), next.text);
        });
  }

  private String releaseKey(long round) {
    // The round comes first: the key of a barrier may end with a slash and a number.
    return RELEASE + round + key;
  }

  /** The state of the barrier; its text is empty before the first member comes. */
  @SuppressWarnings("ArrayRecordComponent")
  private record State(long round, int size, List<String> members, byte[] text) {}
}
