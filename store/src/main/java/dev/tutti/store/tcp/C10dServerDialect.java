package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** What a client requests from a PyTorch server, within the limits of its protocol. */
final class C10dServerDialect implements ServerDialect {
  /*
   * There is no way to request which queries beyond 13 a server supports, and a server that does
   * not support a query drops the client. The first use of such a query is therefore tried on a connection of
   * its own, with a request that changes nothing, and the answer is kept. BARRIER is never used:
   * servers with and without it must serve the same ranks alike, and its effect after a time-out is
   * not specified.
   *
   * A WAIT counts a key that appeared and was deleted again, treats a non-empty queue as a key, and
   * on the poll-loop server misses a key that a COMPARE_SET stored. The keys are therefore checked
   * when it ends, and from time to time while it does not: the longer it takes, the less often.
   */
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long FIRST_LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONGEST_LOOK_NANOS = TimeUnit.SECONDS.toNanos(2);

  private final TcpClient client;
  private final Map<String, Set<String>> membersThatMayHaveStayed = new ConcurrentHashMap<>();
  private volatile @Nullable Boolean queues;
  private volatile @Nullable Boolean listing;

  C10dServerDialect(TcpClient client) {
    this.client = client;
  }

  @Override
  public void requireKey(String key) {
    if (key.length() > Store.MAX_KEY_BYTES / 3
        && key.getBytes(StandardCharsets.UTF_8).length > Store.MAX_KEY_BYTES) {
      throw new IllegalArgumentException(
          "key '%s' has %d bytes; a PyTorch store server accepts one less"
              .formatted(Arguments.shorten(key.substring(1)), Store.MAX_KEY_BYTES));
    }
  }

  @Override
  public Store.Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    // On the wire, "absent" and "empty" are the same expectation, and the reply on success is the
    // same as for a key that already has the desired value. A preceding read in the same write
    // distinguishes them: a server executes requests that come in one piece without a pause.
    byte[] wireExpected = expected == null ? Arguments.NO_BYTES : expected;
    if (wireExpected.length == 0) {
      byte[] before = RemoteReads.value(client, key, TcpConnection.IO_NANOS);
      if (!Arguments.same(before, expected)) {
        return new Store.Swap(false, before);
      }
    } else if (!RemoteReads.check(client, List.of(key), TcpConnection.IO_NANOS)) {
      // The request would wake the waiters for the key without storing it.
      return new Store.Swap(false, null);
    }
    return client.call(
        (connection, deadline) -> {
          RemoteReads.putRead(connection.out, key, client.nonce());
          connection.out.putQuery(Wire.COMPARE_SET, key);
          connection.out.putBytes(wireExpected);
          connection.out.putBytes(desired);
          connection.send(deadline);
          byte[] read = connection.readBytes(deadline);
          byte[] before = Arrays.equals(read, client.nonce()) ? null : read;
          byte[] after = connection.readBytes(deadline);
          if (Arguments.same(before, expected) && Arrays.equals(after, desired)) {
            return new Store.Swap(true, desired);
          }
          boolean absent = before == null && wireExpected.length > 0;
          return new Store.Swap(false, absent ? null : after);
        });
  }

  @Override
  public @Nullable List<byte[]> fetch(List<String> keys, long nanos) {
    return awaited(
        keys, nanos, (came, left) -> RemoteReads.complete(RemoteReads.values(client, keys, left)));
  }

  @Override
  public boolean look(List<String> keys, long nanos) {
    Boolean found =
        awaited(
            keys,
            nanos,
            (came, left) -> {
              boolean enough = came && keys.size() == 1;
              return (enough || RemoteReads.check(client, keys, left)) ? true : null;
            });
    return found != null;
  }

  @Override
  public byte @Nullable [] take(String key, long nanos) {
    return awaited(
        List.of(key),
        nanos,
        (came, left) ->
            came
                ? RemoteReads.pop(client, key, TcpConnection.IO_NANOS)
                : RemoteReads.popInTime(client, key, left));
  }

  /** Waits, looking from time to time, until a look succeeds or the deadline comes. */
  private <T> @Nullable T awaited(List<String> keys, long nanos, Look<T> look) {
    long deadline = Arguments.deadline(client.time(), nanos);
    Pause pause = new Pause(deadline, client.time());
    long slice = FIRST_LOOK_NANOS;
    try (SideWait wait = SideWait.start(client, out -> out.putQuery(Wire.WAIT, keys), nanos)) {
      while (true) {
        long left = deadline - client.time().nanoTime();
        boolean came = wait.answered(deadline - Math.max(0, left - slice));
        T found = look.look(came, deadline - client.time().nanoTime());
        if (found != null || deadline - client.time().nanoTime() <= 0) {
          return found;
        }
        if (came) {
          pause.take();
          wait.send(deadline - client.time().nanoTime());
        } else {
          slice = Math.min(LONGEST_LOOK_NANOS, slice * 2);
        }
      }
    }
  }

  @Override
  public int barrier(String key, int size, long nanos) {
    return new EmulatedBarrier(client, this, key, size).await(nanos);
  }

  /** Records the name of a member that a barrier may still count although its call has ended. */
  void mayHaveStayed(String stateKey, String member) {
    membersThatMayHaveStayed.merge(
        stateKey,
        Set.of(member),
        (some, more) -> Stream.concat(some.stream(), more.stream()).collect(Collectors.toSet()));
  }

  /** Returns the names of this client that a barrier may still count. */
  Set<String> mayHaveStayed(String stateKey) {
    return membersThatMayHaveStayed.getOrDefault(stateKey, Set.of());
  }

  /** Drops names that a barrier no longer counts. */
  void haveLeft(String stateKey, Set<String> members) {
    membersThatMayHaveStayed.computeIfPresent(
        stateKey,
        (key, known) -> {
          Set<String> left = new HashSet<>(known);
          left.removeAll(members);
          return left.isEmpty() ? null : left;
        });
  }

  @Override
  public void requireQueues(long nanos) {
    Boolean known = queues;
    if (known == null) {
      known =
          client.knows(
              nanos,
              out -> out.putQuery(Wire.QUEUE_LENGTH, "tutti/probe"),
              (connection, deadline) -> connection.readLong(deadline));
      queues = known;
    }
    if (!known) {
      throw new StoreException(
          ("the store server at %s has no queues; they need PyTorch's event-loop server of 2.8 or"
                  + " newer")
              .formatted(client.server()));
    }
  }

  @Override
  public void requireListing() {
    Boolean known = listing;
    if (known == null) {
      known =
          client.knows(
              TcpConnection.IO_NANOS,
              out -> out.putByte((byte) Wire.LIST_KEYS),
              (connection, deadline) -> connection.readLong(deadline));
      listing = known;
    }
    if (!known) {
      throw new StoreException(
          "the store server at %s cannot list its keys; that needs PyTorch 2.10 or newer"
              .formatted(client.server()));
    }
  }

  /**
   * Checks whether the awaited thing is there, given whether a wait has ended and how much time is
   * left.
   */
  private interface Look<T> {
    @Nullable T look(boolean came, long nanosLeft);
  }

  /** Pauses that grow each time. */
  private static final class Pause {
    private final long deadline;
    private final Time time;
    private long nanos;

    Pause(long deadline, Time time) {
      this.deadline = deadline;
      this.time = time;
    }

    void take() {
      time.park(this, Math.min(nanos, deadline - time.nanoTime()));
      nanos = Math.clamp(nanos * 2, FIRST_PAUSE_NANOS, LONGEST_PAUSE_NANOS);
      if (Thread.currentThread().isInterrupted()) {
        throw new StoreException("interrupted while waiting", new InterruptedException());
      }
    }
  }
}
