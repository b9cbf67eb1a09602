package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.store.table.Arguments;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** What a client requests from a Tutti server, which has a query for everything. */
final class TuttiServerDialect implements ServerDialect {
  private final TcpClient client;

  TuttiServerDialect(TcpClient client) {
    this.client = client;
  }

  @Override
  public void requireKey(String key) {}

  @Override
  public Store.Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    return client.call(
        (connection, deadline) -> {
          connection.out.putQuery(Wire.SWAP, key);
          connection.out.putLong(expected == null ? 0 : 1);
          connection.out.putBytes(expected == null ? Arguments.NO_BYTES : expected);
          connection.out.putBytes(desired);
          connection.send(deadline);
          boolean stored = connection.readByte(deadline) == 1;
          long length = connection.readLong(deadline);
          return new Store.Swap(stored, length < 0 ? null : connection.readBytes(length, deadline));
        });
  }

  @Override
  public @Nullable List<byte[]> fetch(List<String> keys, long nanos) {
    return SideWait.await(
        client,
        out -> out.putQuery(Wire.FETCH, keys),
        (connection, deadline) -> {
          List<byte[]> values = new ArrayList<>(keys.size());
          for (int i = 0; i < keys.size(); i++) {
            values.add(connection.readBytes(deadline));
          }
          return values;
        },
        nanos,
        TcpClient.GRACE_NANOS,
        () -> {});
  }

  @Override
  public boolean look(List<String> keys, long nanos) {
    Boolean came =
        SideWait.await(
            client,
            out -> out.putQuery(Wire.LOOK, keys),
            (connection, deadline) -> true,
            nanos,
            TcpClient.GRACE_NANOS,
            () -> {});
    return came != null;
  }

  @Override
  public byte @Nullable [] take(String key, long nanos) {
    return SideWait.await(
        client,
        out -> out.putQuery(Wire.TAKE, key),
        (connection, deadline) -> connection.readBytes(deadline),
        nanos,
        TcpConnection.IO_NANOS,
        () -> {});
  }

  @Override
  public int barrier(String key, int size, long nanos) {
    long deadline = Arguments.deadline(client.time(), nanos);
    // Earlier writes of this client must be visible to the members that the barrier releases.
    client.syncIfUnanswered(nanos);
    AtomicInteger arrived = new AtomicInteger();
    try {
      Boolean came =
          SideWait.await(
              client,
              out -> {
                out.putQuery(Wire.BARRIER, key);
                out.putLong(size);
              },
              (connection, readDeadline) -> true,
              deadline - client.time().nanoTime(),
              TcpClient.GRACE_NANOS,
              () -> arrived.set(Math.max(1, state(key)[0])));
      return came != null ? 0 : arrived.get();
    } catch (StoreConnectionException e) {
      // The protocol has no reply for a wrong size: the server drops the client.
      int known = state(key)[1];
      if (known != 0 && known != size) {
        throw new StoreException(Arguments.sizeMessage(key.substring(1), known, size), e);
      }
      throw e;
    }
  }

  /** Returns how many members are at a barrier, and how many it has; used at the deadline. */
  private int[] state(String key) {
    return client.call(
        0,
        (connection, deadline) -> {
          connection.out.putQuery(Wire.BARRIER_STATE, key);
          connection.send(deadline);
          return new int[] {
            (int) connection.readLong(deadline), (int) connection.readLong(deadline)
          };
        });
  }

  @Override
  public void requireQueues(long nanos) {}

  @Override
  public void requireListing() {}
}
