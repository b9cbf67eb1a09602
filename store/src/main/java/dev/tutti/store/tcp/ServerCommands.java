package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.KeyTable.BarrierWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.PopWaiter;
import dev.tutti.store.table.KeyText;
import dev.tutti.store.table.WakeUp;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/** Executes requests on the server's table; used by the event loop only. */
final class ServerCommands {
  /** The memory that a table takes for each key for which a client waits. */
  private static final int WAIT_BYTES = 64;

  /** The additional memory that it takes for a key for which no other client waits. */
  private static final int LONE_BYTES = 256;

  private final KeyTable table;
  private final byte[] capability;
  private final Refusals refusals;
  private final Consumer<ServerConnection> touched;
  private final LongConsumer joined;

  /**
   * Creates an empty table.
   *
   * @param instance identifies this server
   * @param refusals why clients were dropped
   * @param touched receives each client that gets a reply
   * @param joined receives the number of processes that have joined
   * @param most the maximum number of bytes in the table
   */
  ServerCommands(
      String instance,
      Refusals refusals,
      Consumer<ServerConnection> touched,
      LongConsumer joined,
      long most) {
    this.refusals = refusals;
    this.table = new KeyTable(most);
    this.capability =
        (Wire.CAPABILITY_VERSION + ' ' + instance).getBytes(StandardCharsets.US_ASCII);
    this.touched = touched;
    this.joined = joined;
  }

  /**
   * Executes a complete request.
   *
   * @throws ProtocolException if the request is impossible; the client must be closed
   * @throws dev.tutti.StoreException if the data does not permit the request; the client must also
   *     be closed, since the protocol has no reply for this case
   */
  void run(ServerConnection client, RequestReader request) throws ProtocolException {
    SendQueue reply = client.replies;
    touched.accept(client);
    switch (request.query()) {
      case Wire.SET -> table.set(request.key(), request.value(0));
      case Wire.COMPARE_SET -> reply.putBytes(compareSet(client, request));
      case Wire.GET -> reply.putBytes(valueOf(request.key()));
      case Wire.ADD -> reply.putLong(add(request.key(), request.number()));
      case Wire.CHECK -> {
        boolean ready = table.missing(request.takeKeys(), false).isEmpty();
        reply.putByte(ready ? Wire.READY : Wire.NOT_READY);
      }
      case Wire.WAIT -> await(client, request.takeKeys(), KeyWaiter.Kind.CONSUMER, false);
      case Wire.GET_NUM_KEYS -> reply.putLong(table.size());
      case Wire.DELETE_KEY -> reply.putLong(table.delete(request.key()) ? 1 : 0);
      case Wire.APPEND -> table.append(request.key(), request.value(0));
      case Wire.MULTI_GET -> putValues(reply, request.takeKeys());
      case Wire.MULTI_SET -> table.setAll(request.takeKeys(), request::value);
      case Wire.CANCEL_WAIT -> {
        client.cancelWaits();
        reply.putByte(Wire.WAIT_CANCELED);
      }
      case Wire.PING -> reply.putInt((int) request.number());
      case Wire.QUEUE_PUSH -> table.push(request.key(), request.value(0));
      case Wire.QUEUE_POP -> {
        reply.putLong(table.length(request.key()));
        byte[] value = table.pop(request.key());
        if (value != null) {
          reply.putOwnBytes(value);
        }
      }
      case Wire.QUEUE_LENGTH -> reply.putLong(table.length(request.key()));
      case Wire.LIST_KEYS -> {
        Collection<String> keys = table.keys();
        reply.putLong(keys.size());
        keys.forEach(key -> reply.putBytes(key.getBytes(KeyText.BYTES)));
      }
      case Wire.BARRIER -> barrier(client, request.key(), request.number());
      case Wire.SWAP -> swap(reply, request);
      case Wire.LOOK -> await(client, request.takeKeys(), KeyWaiter.Kind.KEY, false);
      case Wire.FETCH -> await(client, request.takeKeys(), KeyWaiter.Kind.VALUE, true);
      case Wire.TAKE -> take(client, request.key());
      case Wire.BARRIER_STATE -> {
        reply.putLong(table.arrived(request.key()));
        reply.putLong(table.barrierSize(request.key()));
      }
      case Wire.CHALLENGE -> client.gate.challenge(request.value(0));
      case Wire.PROVE -> client.gate.prove(request.value(0));
      default -> throw new ProtocolException("unknown query " + request.query());
    }
  }

  /** Removes what users wrote, both values and queues, except keys with a prefix. */
  void forgetAllBut(String keptPrefix) {
    String users = String.valueOf(KeyText.PREFIX);
    table.forget(key -> key.startsWith(users) && !key.startsWith(users + keptPrefix));
  }

  private byte[] compareSet(ServerConnection client, RequestReader request) {
    byte[] expected = request.value(0);
    byte[] desired = request.value(1);
    byte[] old = table.get(request.key());
    if (old == null && expected.length > 0) {
      // For an absent key, c10d replies with the expected value although the key does not have it.
      return answer(client, request.key(), expected);
    }
    if (old != null && !Arrays.equals(old, expected)) {
      return old;
    }
    table.set(request.key(), desired);
    return desired;
  }

  /** Answers a question about an absent key, or returns what the client expected. */
  private byte[] answer(ServerConnection client, String key, byte[] expected) {
    if (expected.length == Wire.NAME_BYTES && key.equals(Wire.REFUSAL)) {
      return refusals.of(expected);
    }
    if (!key.equals(Wire.CAPABILITY)) {
      return expected;
    }
    if (expected.length == Wire.NAME_BYTES) {
      client.name = expected;
    }
    return capability;
  }

  private void swap(SendQueue reply, RequestReader request) {
    byte[] expected = request.number() == 0 ? null : request.value(0);
    Store.Swap swap = table.compareSet(request.key(), expected, request.value(1));
    reply.putByte((byte) (swap.stored() ? 1 : 0));
    byte[] value = swap.value();
    if (value == null) {
      reply.putLong(-1);
    } else {
      reply.putBytes(value);
    }
  }

  private long add(String key, long delta) {
    long sum = table.add(key, delta);
    if (key.equals(Wire.INIT_KEY)) {
      joined.accept(sum);
    }
    return sum;
  }

  private byte[] valueOf(String key) {
    byte[] value = table.get(key);
    return value == null ? Arguments.NO_BYTES : value;
  }

  private void putValues(SendQueue reply, List<String> keys) {
    for (String key : keys) {
      reply.putBytes(valueOf(key));
    }
  }

  private void await(
      ServerConnection client, List<String> keys, KeyWaiter.Kind kind, boolean withValues)
      throws ProtocolException {
    Wait wait =
        new Wait(client, waitBytes(keys)) {
          @Override
          void answer(SendQueue reply) {
            reply.putByte(Wire.STOP_WAITING);
            if (withValues) {
              putValues(reply, keys);
            }
          }
        };
    KeyWaiter waiter = new KeyWaiter(keys, kind, wait);
    if (table.await(waiter)) {
      wait.answerAtOnce();
    } else {
      wait.register(() -> table.cancel(waiter));
    }
  }

  private long waitBytes(List<String> keys) {
    return (long) WAIT_BYTES * keys.size() + (long) LONE_BYTES * table.countUnawaited(keys);
  }

  private void take(ServerConnection client, String key) throws ProtocolException {
    List<PopWaiter> self = new ArrayList<>(1);
    Wait wait =
        new Wait(client, WAIT_BYTES + LONE_BYTES) {
          @Override
          void answer(SendQueue reply) {
            reply.putByte(Wire.STOP_WAITING);
            reply.putOwnBytes(Objects.requireNonNull(self.get(0).value));
          }
        };
    PopWaiter waiter = new PopWaiter(key, wait);
    self.add(waiter);
    if (table.await(waiter)) {
      wait.answerAtOnce();
    } else {
      wait.register(() -> table.cancel(waiter));
    }
  }

  private void barrier(ServerConnection client, String key, long size) throws ProtocolException {
    if (size < 1 || size > Integer.MAX_VALUE) {
      throw new ProtocolException("a barrier cannot have " + size + " members");
    }
    Wait wait =
        new Wait(client, WAIT_BYTES + LONE_BYTES) {
          @Override
          void answer(SendQueue reply) {
            reply.putByte(Wire.STOP_WAITING);
          }
        };
    BarrierWaiter waiter = new BarrierWaiter(key, (int) size, wait);
    if (table.arrive(waiter)) {
      wait.answerAtOnce();
    } else {
      wait.register(() -> table.leave(waiter));
    }
  }

  /** Answers a client when the awaited event has come. */
  private abstract class Wait implements WakeUp {
    private final ServerConnection client;
    private long bytes;
    private Runnable cancel = () -> {};

    /** Counts the memory that the table takes for the wait. */
    Wait(ServerConnection client, long bytes) {
      this.client = client;
      client.memory.take(bytes);
      this.bytes = bytes;
    }

    abstract void answer(SendQueue reply);

    void answerAtOnce() {
      client.memory.give(bytes);
      answer(client.replies);
    }

    void register(Runnable how) throws ProtocolException {
      bytes += client.requests.takeMemory();
      cancel =
          () -> {
            how.run();
            client.memory.give(bytes);
          };
      client.waiting(cancel);
    }

    @Override
    public void wake() {
      touched.accept(client);
      client.cancels.remove(cancel);
      client.memory.give(bytes);
      try {
        answer(client.replies);
      } catch (StoreException | OutOfMemoryError e) {
        // The client that writes the key is not to blame, and the other waiters for the key must
        // still be woken.
        client.broken = e;
      }
    }
  }
}
