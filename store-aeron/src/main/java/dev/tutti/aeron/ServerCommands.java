package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.store.internal.KeyTable;
import dev.tutti.store.internal.KeyTable.BarrierWaiter;
import dev.tutti.store.internal.KeyTable.KeyWaiter;
import dev.tutti.store.internal.KeyTable.PopWaiter;
import dev.tutti.store.internal.WakeUp;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Carries out requests on the server's table; used by the server's thread only. */
final class ServerCommands implements ServerClient.Requests {
  /*
   * A change of the table may answer waits of other clients, through the same writer. So each request
   * first does all its changes, then writes its own reply.
   */
  private final KeyTable table = new KeyTable();
  private final BodyWriter body = new BodyWriter();

  @Override
  public void run(ServerClient client, int code, long call, BodyReader in) {
    try {
      switch (code) {
        case Protocol.SET -> {
          table.set(in.readKey(), in.readValue());
          done(client, call);
        }
        case Protocol.FETCH -> {
          boolean now = in.readByte() != 0;
          fetch(client, call, in.readKeys(), now);
        }
        case Protocol.WAIT -> {
          boolean now = in.readByte() != 0;
          await(client, call, in.readKeys(), now);
        }
        case Protocol.ADD -> number(client, call, table.add(in.readKey(), in.readLong()));
        case Protocol.SWAP -> swap(client, call, in);
        case Protocol.CHECK ->
            number(client, call, table.missing(in.readKeys(), false).isEmpty() ? 1 : 0);
        case Protocol.DELETE -> number(client, call, table.delete(in.readKey()) ? 1 : 0);
        case Protocol.COUNT -> number(client, call, table.size());
        case Protocol.APPEND -> {
          table.append(in.readKey(), in.readValue());
          done(client, call);
        }
        case Protocol.MULTI_SET -> multiSet(client, call, in);
        case Protocol.PUSH -> {
          table.push(in.readKey(), in.readValue());
          done(client, call);
        }
        case Protocol.POP -> {
          boolean now = in.readByte() != 0;
          pop(client, call, in.readKey(), now);
        }
        case Protocol.LENGTH -> number(client, call, table.length(in.readKey()));
        case Protocol.LIST -> {
          body.clear().putTexts(List.copyOf(table.keys()));
          client.reply(Protocol.OK, call, body);
        }
        case Protocol.BARRIER -> {
          boolean now = in.readByte() != 0;
          barrier(client, call, in.readInt(), in.readKey(), now);
        }
        case Protocol.CANCEL -> client.cancel(call);
        case Protocol.WILL -> {
          client.wills.put(call, new Will(in.readKey(), in.readValue()));
          number(client, call, call);
        }
        case Protocol.WITHDRAW -> {
          client.wills.remove(in.readLong());
          done(client, call);
        }
        default -> throw new ProtocolException("there is no request " + code);
      }
    } catch (StoreException | OutOfMemoryError e) {
      failed(client, call, e);
    }
  }

  /**
   * Is what a client leaves if it is lost.
   *
   * @param log what the key starts with, in front of a number
   * @param value the bytes
   */
  @SuppressWarnings("ArrayRecordComponent")
  record Will(String log, byte[] value) {}

  /** Publishes what a lost client left. */
  void execute(Collection<Will> wills) {
    for (Will will : wills) {
      int number = 1;
      while (table.get(will.log + number) != null) {
        number++;
      }
      table.set(will.log + number, will.value);
    }
  }

  private void done(ServerClient client, long call) {
    client.reply(Protocol.OK, call, body.clear());
  }

  private void number(ServerClient client, long call, long number) {
    number(client, Protocol.OK, call, number);
  }

  private void number(ServerClient client, int code, long call, long number) {
    body.clear().putLong(number);
    client.reply(code, call, body);
  }

  private void failed(ServerClient client, long call, Throwable failure) {
    ServerClient.putReason(body, failure);
    client.reply(Protocol.FAILED, call, body);
  }

  private void swap(ServerClient client, long call, BodyReader in) {
    String key = in.readKey();
    byte @Nullable [] expected = in.readOptional();
    Store.Swap swap = table.compareSet(key, expected, in.readValue());
    body.clear().putByte(swap.stored() ? 1 : 0);
    if (!swap.stored()) {
      body.putOptional(swap.value());
    }
    client.reply(Protocol.OK, call, body);
  }

  private void multiSet(ServerClient client, long call, BodyReader in) {
    List<String> keys = in.readKeys();
    List<byte[]> values = in.readAllBytes();
    if (keys.size() != values.size()) {
      throw new ProtocolException(keys.size() + " keys and " + values.size() + " values");
    }
    for (int i = 0; i < keys.size(); i++) {
      table.set(keys.get(i), values.get(i));
    }
    done(client, call);
  }

  private void fetch(ServerClient client, long call, List<String> keys, boolean now) {
    await(client, call, keys, now, KeyWaiter.Kind.VALUE, () -> values(client, call, keys));
  }

  private void values(ServerClient client, long call, List<String> keys) {
    try {
      body.clear().putInt(keys.size());
      for (String key : keys) {
        body.putBytes(Objects.requireNonNull(table.get(key)));
      }
      client.reply(Protocol.OK, call, body);
    } catch (StoreException | OutOfMemoryError e) {
      failed(client, call, e);
    }
  }

  private void await(ServerClient client, long call, List<String> keys, boolean now) {
    await(client, call, keys, now, KeyWaiter.Kind.KEY, () -> done(client, call));
  }

  private void await(
      ServerClient client,
      long call,
      List<String> keys,
      boolean now,
      KeyWaiter.Kind kind,
      WakeUp answer) {
    boolean valuesOnly = kind == KeyWaiter.Kind.VALUE;
    List<String> missing = table.missing(keys, valuesOnly);
    if (missing.isEmpty()) {
      answer.wake();
      return;
    }
    if (now) {
      missing(client, call, missing);
      return;
    }
    KeyWaiter waiter =
        new KeyWaiter(
            keys,
            kind,
            () -> {
              client.answered(call);
              answer.wake();
            });
    table.await(waiter);
    client.waiting(
        call,
        new ServerClient.Wait() {
          @Override
          public void cancel() {
            table.cancel(waiter);
          }

          @Override
          public void answerMissing() {
            table.cancel(waiter);
            missing(client, call, table.missing(keys, valuesOnly));
          }
        });
  }

  private void missing(ServerClient client, long call, List<String> keys) {
    body.clear().putTexts(keys);
    client.reply(Protocol.MISSING, call, body);
  }

  private void pop(ServerClient client, long call, String key, boolean now) {
    if (now) {
      popped(client, call, table.pop(key));
      return;
    }
    Popping popping = new Popping(client, call, key);
    if (table.await(popping.waiter)) {
      popped(client, call, popping.waiter.value);
    } else {
      client.waiting(call, popping);
    }
  }

  private void popped(ServerClient client, long call, byte @Nullable [] value) {
    body.clear();
    if (value != null) {
      body.putBytes(value);
    }
    client.reply(value == null ? Protocol.MISSING : Protocol.OK, call, body);
  }

  private void barrier(ServerClient client, long call, int size, String key, boolean now) {
    if (size < 1) {
      throw new ProtocolException("a barrier of " + size + " members");
    }
    Arriving arriving = new Arriving(client, call, size, key);
    if (table.arrive(arriving.waiter)) {
      done(client, call);
    } else if (now) {
      arriving.answerMissing();
    } else {
      client.waiting(call, arriving);
    }
  }

  /** Waits for a value of a queue. */
  private final class Popping implements ServerClient.Wait {
    private final ServerClient client;
    private final long call;
    final PopWaiter waiter;

    Popping(ServerClient client, long call, String key) {
      this.client = client;
      this.call = call;
      this.waiter = new PopWaiter(key, this::popped);
    }

    private void popped() {
      client.answered(call);
      ServerCommands.this.popped(client, call, waiter.value);
    }

    @Override
    public void cancel() {
      table.cancel(waiter);
    }

    @Override
    public void answerMissing() {
      table.cancel(waiter);
      ServerCommands.this.popped(client, call, null);
    }
  }

  /** Waits at a barrier. */
  private final class Arriving implements ServerClient.Wait {
    private final ServerClient client;
    private final long call;
    final BarrierWaiter waiter;

    Arriving(ServerClient client, long call, int size, String key) {
      this.client = client;
      this.call = call;
      this.waiter = new BarrierWaiter(key, size, this::complete);
    }

    private void complete() {
      client.answered(call);
      done(client, call);
    }

    @Override
    public void cancel() {
      table.leave(waiter);
    }

    @Override
    public void answerMissing() {
      int arrived = table.arrived(waiter.key);
      table.leave(waiter);
      number(client, Protocol.MISSING, call, arrived);
    }
  }
}
