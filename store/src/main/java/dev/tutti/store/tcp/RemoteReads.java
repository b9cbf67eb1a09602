package dev.tutti.store.tcp;

import dev.tutti.store.table.Arguments;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads from a store server in ways that every server understands; keys are in their wire form. */
final class RemoteReads {
  /*
   * A GET of an absent key cannot be distinguished from an empty value, or makes the server drop
   * the client. A COMPARE_SET that expects and desires the same fresh bytes stores nothing; it
   * returns the value of a key that exists, and those bytes for one that does not. One round trip
   * therefore reads a value and detects its absence.
   *
   * PyTorch's event-loop server, however, takes every COMPARE_SET for a change and wakes the
   * waiters for the key. A rank of PyTorch that waits for an absent key then gets an empty value,
   * and Gloo reads its peer's address from that and crashes. With such a server, a CHECK first queries
   * whether the key exists.
   *
   * Several such requests are sent in one write. Their number is limited, so that they fit in the
   * socket buffers while the server waits for this side to read its replies.
   */
  private static final int CHUNK_KEYS = 128;
  private static final int CHUNK_BYTES = 16 * 1024;

  private RemoteReads() {}

  /** Adds a request for a value, which must be known to exist unless the server is Tutti's. */
  static void putRead(SendQueue out, String key, byte[] nonce) {
    out.putQuery(Wire.COMPARE_SET, key);
    out.putBytes(nonce);
    out.putBytes(nonce);
  }

  /** Returns the value of a key, or null if there is none. */
  static byte @Nullable [] value(TcpClient client, String key, long nanos) {
    return values(client, List.of(key), nanos).get(0);
  }

  /** Returns the values of keys, with null for those that have none. */
  static List<byte @Nullable []> values(TcpClient client, List<String> keys, long nanos) {
    if (client.isTutti()) {
      return read(client, keys, nanos);
    }
    Set<String> missing = Set.copyOf(missing(client, keys, nanos));
    List<String> present = keys.stream().filter(key -> !missing.contains(key)).toList();
    Iterator<byte @Nullable []> found = read(client, present, nanos).iterator();
    List<byte @Nullable []> values = new ArrayList<>(keys.size());
    for (String key : keys) {
      values.add(missing.contains(key) ? null : found.next());
    }
    return values;
  }

  private static List<byte @Nullable []> read(TcpClient client, List<String> keys, long nanos) {
    long end = Arguments.deadline(client.time(), nanos);
    List<byte @Nullable []> values = new ArrayList<>(keys.size());
    while (values.size() < keys.size()) {
      client.call(
          end - client.time().nanoTime(),
          (connection, deadline) -> {
            int start = values.size();
            int next = start;
            while (next < keys.size()
                && next - start < CHUNK_KEYS
                && connection.out.pending() < CHUNK_BYTES) {
              putRead(connection.out, keys.get(next++), client.nonce());
            }
            connection.send(deadline);
            for (int i = start; i < next; i++) {
              values.add(present(client, connection.readBytes(deadline)));
            }
            return next;
          });
    }
    return values;
  }

  /** Returns the same values, or null if one of them is null. */
  static @Nullable List<byte[]> complete(List<byte @Nullable []> values) {
    List<byte[]> all = new ArrayList<>(values.size());
    for (byte[] value : values) {
      if (value == null) {
        return null;
      }
      all.add(value);
    }
    return all;
  }

  /** Returns whether all keys exist, as values or as non-empty queues. */
  static boolean check(TcpClient client, List<String> keys, long nanos) {
    return client.call(
        nanos,
        (connection, deadline) -> {
          connection.out.putQuery(Wire.CHECK, keys);
          connection.send(deadline);
          return connection.readByte(deadline) == Wire.READY;
        });
  }

  /** Returns the keys that do not exist. */
  static List<String> missing(TcpClient client, List<String> keys, long nanos) {
    long end = Arguments.deadline(client.time(), nanos);
    List<String> missing = new ArrayList<>();
    for (int first = 0; first < keys.size(); first += CHUNK_KEYS) {
      List<String> chunk = keys.subList(first, Math.min(keys.size(), first + CHUNK_KEYS));
      client.call(
          end - client.time().nanoTime(),
          (connection, deadline) -> {
            for (String key : chunk) {
              connection.out.putQuery(Wire.CHECK, List.of(key));
            }
            connection.send(deadline);
            for (String key : chunk) {
              if (connection.readByte(deadline) != Wire.READY) {
                missing.add(key);
              }
            }
            return chunk.size();
          });
    }
    return missing;
  }

  /**
   * Takes the first value of a queue, or returns null if it is empty. A value that is on its way
   * when the time-out comes would be lost, so if the time-out is short, the server must first show
   * that it answers.
   */
  static byte @Nullable [] popInTime(TcpClient client, String key, long nanos) {
    if (nanos < TcpConnection.IO_NANOS && !check(client, List.of(key), nanos)) {
      return null;
    }
    return pop(client, key, Math.max(nanos, TcpConnection.IO_NANOS));
  }

  /** Takes the first value of a queue, or returns null if it is empty. */
  static byte @Nullable [] pop(TcpClient client, String key, long nanos) {
    return client.call(
        nanos,
        (connection, deadline) -> {
          connection.out.putQuery(Wire.QUEUE_POP, key);
          connection.send(deadline);
          return connection.readLong(deadline) > 0 ? connection.readBytes(deadline) : null;
        });
  }

  private static byte @Nullable [] present(TcpClient client, byte[] answer) {
    return Arrays.equals(answer, client.nonce()) ? null : answer;
  }
}
