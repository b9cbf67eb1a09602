package dev.tutti.aeron.server;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.KeyTable.BarrierWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.PopWaiter;
import dev.tutti.store.table.WakeUp;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A handler that carries out requests on the server's table; used only by the server's thread. */
public final class RequestHandler implements Caller.Requests {
  /*
   * A change to the table may answer waits of other clients, through the same writer. Each request
   * therefore first makes all its changes, and then writes its own reply.
   */
  private static final int LONGEST_LOG =
      Store.MAX_KEY_BYTES - String.valueOf(Integer.MAX_VALUE).length();

  /** The bytes that a table takes for each awaited key. */
  private static final long WAIT_BYTES = 128;

  /** The additional bytes for a key that nobody else waits for. */
  private static final long LONE_BYTES = 256;

  private final KeyTable table;
  private final BodyWriter body;

  /** Creates a handler whose keys and answers may have any size that the protocol allows. */
  public RequestHandler() {
    this(Long.MAX_VALUE, Protocol.MAX_BODY_BYTES);
  }

  /**
   * Creates a handler on an empty table.
   *
   * @param most the maximum number of bytes in the table
   * @param longest the maximum number of bytes in an answer
   */
  RequestHandler(long most, int longest) {
    this.table = new KeyTable(most);
    this.body = new BodyWriter(longest);
  }

  @Override
  public void run(Caller caller, int code, long call, BodyReader in) {
    try {
      switch (code) {
        case Protocol.SET -> {
          table.set(in.readKey(), in.readValue());
          done(caller, call);
        }
        case Protocol.FETCH -> {
          boolean now = in.readByte() != 0;
          fetch(caller, call, in.readKeys(), now);
        }
        case Protocol.WAIT -> {
          boolean now = in.readByte() != 0;
          await(caller, call, in.readKeys(), now);
        }
        case Protocol.ADD -> number(caller, call, table.add(in.readKey(), in.readLong()));
        case Protocol.SWAP -> swap(caller, call, in);
        case Protocol.CHECK ->
            number(caller, call, table.missing(in.readKeys(), false).isEmpty() ? 1 : 0);
        case Protocol.DELETE -> number(caller, call, table.delete(in.readKey()) ? 1 : 0);
        case Protocol.COUNT -> number(caller, call, table.size());
        case Protocol.APPEND -> {
          table.append(in.readKey(), in.readValue());
          done(caller, call);
        }
        case Protocol.MULTI_SET -> multiSet(caller, call, in);
        case Protocol.PUSH -> {
          table.push(in.readKey(), in.readValue());
          done(caller, call);
        }
        case Protocol.POP -> {
          boolean now = in.readByte() != 0;
          pop(caller, call, in.readKey(), now);
        }
        case Protocol.LENGTH -> number(caller, call, table.length(in.readKey()));
        case Protocol.LIST -> answer(caller, call, () -> body.putTexts(List.copyOf(table.keys())));
        case Protocol.BARRIER -> {
          boolean now = in.readByte() != 0;
          barrier(caller, call, in.readInt(), in.readKey(), now);
        }
        case Protocol.CANCEL -> caller.cancel(call);
        case Protocol.WILL -> {
          Caller.Will will = new Caller.Will(in.readKey(LONGEST_LOG), in.readValue());
          caller.hold(call, LONE_BYTES + will.log().length() + will.value().length);
          caller.wills.put(call, will);
          number(caller, call, call);
        }
        case Protocol.WITHDRAW -> {
          long will = in.readLong();
          if (caller.wills.remove(will) != null) {
            caller.release(will);
          }
          done(caller, call);
        }
        default -> throw new MalformedMessageException("unknown request " + code);
      }
    } catch (StoreException | OutOfMemoryError e) {
      caller.fail(call, e, body);
    }
  }

  /** Publishes the wills of a lost client, even if the table is full, because others need them. */
  public void execute(Collection<Caller.Will> wills) {
    Map<String, Long> next = new HashMap<>();
    for (Caller.Will will : wills) {
      long number = table.nextOf(will.log(), next.getOrDefault(will.log(), 1L));
      next.put(will.log(), number + 1);
      table.setBeyondLimit(will.log() + number, will.value());
    }
  }

  /** Returns the table on which requests operate. */
  public KeyTable table() {
    return table;
  }

  private void done(Caller caller, long call) {
    caller.reply(Protocol.OK, call, body.clear());
  }

  private void number(Caller caller, long call, long number) {
    number(caller, Protocol.OK, call, number);
  }

  private void number(Caller caller, int code, long call, long number) {
    body.clear().putLong(number);
    caller.reply(code, call, body);
  }

  private void swap(Caller caller, long call, BodyReader in) {
    String key = in.readKey();
    byte @Nullable [] expected = in.readOptional();
    Store.Swap swap = table.compareSet(key, expected, in.readValue());
    body.clear().putByte(swap.stored() ? 1 : 0);
    if (!swap.stored()) {
      body.putOptional(swap.value());
    }
    caller.reply(Protocol.OK, call, body);
  }

  private void multiSet(Caller caller, long call, BodyReader in) {
    List<String> keys = in.readKeys();
    List<byte[]> values = in.readAllBytes();
    if (keys.size() != values.size()) {
      throw new MalformedMessageException(keys.size() + " keys and " + values.size() + " values");
    }
    table.setAll(keys, values::get);
    done(caller, call);
  }

  private void fetch(Caller caller, long call, List<String> keys, boolean now) {
    await(caller, call, keys, now, KeyWaiter.Kind.VALUE, () -> values(caller, call, keys));
  }

  private void values(Caller caller, long call, List<String> keys) {
    answer(
        caller,
        call,
        () -> {
          body.putInt(keys.size());
          for (String key : keys) {
            body.putBytes(Objects.requireNonNull(table.get(key)));
          }
        });
  }

  /** Answers a call that changes nothing, and for whose answer there may be no room or memory. */
  private void answer(Caller caller, long call, Runnable put) {
    body.clear();
    try {
      if (caller.isHeard()) {
        put.run();
      }
      caller.reply(Protocol.OK, call, body);
    } catch (StoreException | OutOfMemoryError e) {
      caller.refuse(call, e, body);
    }
  }

  private void await(Caller caller, long call, List<String> keys, boolean now) {
    await(caller, call, keys, now, KeyWaiter.Kind.KEY, () -> done(caller, call));
  }

  private void await(
      Caller caller,
      long call,
      List<String> keys,
      boolean now,
      KeyWaiter.Kind kind,
      Runnable answer) {
    boolean valuesOnly = kind == KeyWaiter.Kind.VALUE;
    long bytes = waitBytes(keys);
    KeyWaiter waiter = new KeyWaiter(keys, kind, answered(caller, call, answer));
    Caller.Wait wait =
        new Caller.Wait(
            () -> table.cancel(waiter),
            () -> missing(caller, call, table.missing(keys, valuesOnly)));
    begun(caller, call, now, bytes, table.await(waiter), answer, wait);
  }

  /** Returns what a wait calls when it is over. */
  private static WakeUp answered(Caller caller, long call, Runnable answer) {
    return () -> {
      caller.answered(call);
      answer.run();
    };
  }

  /**
   * Answers a call that has begun to wait, or keeps it.
   *
   * @param now whether the call does not wait
   * @param bytes the bytes that the wait takes
   * @param isOver whether there is nothing to wait for
   */
  private static void begun(
      Caller caller,
      long call,
      boolean now,
      long bytes,
      boolean isOver,
      Runnable answer,
      Caller.Wait wait) {
    if (isOver) {
      answer.run();
    } else if (now) {
      wait.answerMissing();
    } else {
      try {
        caller.hold(call, bytes);
      } catch (StoreException e) {
        wait.cancel().run();
        throw e;
      }
      caller.waiting(call, wait);
    }
  }

  private long waitBytes(List<String> keys) {
    long bytes = LONE_BYTES * table.countUnawaited(keys);
    for (String key : keys) {
      bytes += WAIT_BYTES + key.length();
    }
    return bytes;
  }

  private void missing(Caller caller, long call, List<String> keys) {
    body.clear().putTexts(keys);
    caller.reply(Protocol.MISSING, call, body);
  }

  private void pop(Caller caller, long call, String key, boolean now) {
    PopWaiter[] self = new PopWaiter[1];
    Runnable answer = () -> popped(caller, call, self[0].value);
    PopWaiter waiter = new PopWaiter(key, answered(caller, call, answer));
    self[0] = waiter;
    Caller.Wait wait =
        new Caller.Wait(() -> table.cancel(waiter), () -> popped(caller, call, null));
    begun(caller, call, now, waitBytes(key), table.await(waiter), answer, wait);
  }

  private void popped(Caller caller, long call, byte @Nullable [] value) {
    body.clear();
    if (value != null) {
      body.putBytes(value);
    }
    caller.reply(value == null ? Protocol.MISSING : Protocol.OK, call, body);
  }

  private void barrier(Caller caller, long call, int size, String key, boolean now) {
    if (size < 1) {
      throw new MalformedMessageException("a barrier cannot have " + size + " members");
    }
    Runnable answer = () -> done(caller, call);
    BarrierWaiter waiter = new BarrierWaiter(key, size, answered(caller, call, answer));
    Caller.Wait wait =
        new Caller.Wait(
            () -> table.leave(waiter),
            // This member has left by then.
            () -> number(caller, Protocol.MISSING, call, table.arrived(key) + 1L));
    begun(caller, call, now, waitBytes(key), table.arrive(waiter), answer, wait);
  }

  private static long waitBytes(String key) {
    return WAIT_BYTES + LONE_BYTES + key.length();
  }
}
