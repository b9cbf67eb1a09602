package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import dev.tutti.aeron.server.Caller;
import dev.tutti.aeron.server.RequestHandler;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.Protocol;
import io.aeron.cluster.service.ClientSession;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** A client as known to all members of a cluster; used by the thread of the state machine. */
final class ClusterCaller extends Caller {
  /*
   * A client that finds a new leader cannot determine what became of its calls, so it sends them again.
   * Each call has a slot, which the client gives to one call at a time; the call's number contains
   * the slot, and grows. A member can therefore determine whether a call is new, waiting or answered. It
   * keeps one answer for each slot, if the call must not be done twice or ended without what it
   * waited for. All of this is part of the state that the members share.
   */
  private static final long SLOT_MASK = (1L << CallNumbers.SLOT_BITS) - 1;

  final ClientSession client;
  final FrameReader reader;
  final Map<Integer, Slot> slots = new TreeMap<>();
  boolean dropped;
  private final RequestHandler commands;
  private final LongSupplier orders;
  private @Nullable ClusterEgress egress;

  /**
   * Creates a client that has made no calls.
   *
   * @param client its session
   * @param commands runs its requests
   * @param orders returns increasing numbers, for calls that wait
   */
  ClusterCaller(ClientSession client, RequestHandler commands, LongSupplier orders) {
    this.client = client;
    this.commands = commands;
    this.orders = orders;
    this.reader = new FrameReader(session(client), this::take);
  }

  /** Returns the session number that is in all frames of a client. */
  static long session(ClientSession client) {
    byte[] principal = client.encodedPrincipal();
    return principal.length == Long.BYTES ? ByteBuffer.wrap(principal).getLong() : 0;
  }

  /** The last call of a slot. */
  static final class Slot {
    final long call;
    final int code;
    long order;
    byte @Nullable [] request;
    int answerCode;
    byte @Nullable [] answer;

    Slot(long call, int code) {
      this.call = call;
      this.code = code;
    }
  }

  private static boolean waits(int code) {
    return code == Protocol.FETCH
        || code == Protocol.WAIT
        || code == Protocol.POP
        || code == Protocol.BARRIER;
  }

  /** Returns whether a request changes nothing, so that it may safely be done twice. */
  private static boolean reads(int code) {
    return code == Protocol.FETCH
        || code == Protocol.WAIT
        || code == Protocol.CHECK
        || code == Protocol.COUNT
        || code == Protocol.LENGTH
        || code == Protocol.LIST;
  }

  private void take(int code, long call, BodyReader body) {
    if (code == Protocol.CANCEL) {
      if (call == CallNumbers.PROBE) {
        send(Protocol.OK, call, new byte[0]);
      } else {
        cancel(call);
      }
      return;
    }
    int number = (int) (call & SLOT_MASK);
    Slot slot = slots.get(number);
    if (slot == null || call > slot.call) {
      if (slot != null) {
        drop(slot.call);
      }
      slot = new Slot(call, code);
      slots.put(number, slot);
      run(slot, body);
    } else if (call == slot.call && !isWaiting(call)) {
      byte[] answer = slot.answer;
      if (answer == null) {
        run(slot, body);
      } else {
        send(slot.answerCode, call, answer);
      }
    }
  }

  private void run(Slot slot, BodyReader body) {
    if (waits(slot.code)) {
      runWait(slot, body.rest());
    } else {
      commands.run(this, slot.code, slot.call, body);
    }
  }

  /** Runs a call that may wait; also resumes one that was waiting when a snapshot was taken. */
  void runWait(Slot slot, byte[] request) {
    slot.request = request;
    slot.order = orders.getAsLong();
    BodyReader body = new BodyReader().wrap(new UnsafeBuffer(request), 0, request.length);
    try {
      commands.run(this, slot.code, slot.call, body);
    } finally {
      if (!isWaiting(slot.call)) {
        slot.request = null;
      }
    }
  }

  @Override
  public void reply(int code, long call, BodyWriter body) {
    Slot slot = slots.get((int) (call & SLOT_MASK));
    if (slot == null || slot.call != call) {
      return;
    }
    slot.request = null;
    if (!reads(slot.code) || code == Protocol.MISSING) {
      slot.answerCode = code;
      slot.answer = Arrays.copyOf(body.buffer().byteArray(), body.length());
    }
    if (egress != null) {
      if (code == Protocol.OK && reads(slot.code) && !egress.hasRoom(body.length())) {
        refuse(call, noRoom(body.length()), body);
      } else {
        egress.send(code, call, body.buffer(), body.length());
      }
    }
  }

  private static StoreException noRoom(int bytes) {
    return new StoreException(
        "no room for an answer of %d bytes behind those that this process has not read yet; request less at once"
            .formatted(bytes));
  }

  @Override
  public boolean isHeard() {
    return egress != null;
  }

  private void send(int code, long call, byte[] answer) {
    if (egress != null) {
      egress.send(code, call, new UnsafeBuffer(answer), answer.length);
    }
  }

  @Override
  public void fail(long call, Throwable failure, BodyWriter body) {
    if (failure instanceof Error) {
      throw new AgentTerminationException(failure); // see ClusterService
    }
    super.fail(call, failure, body);
  }

  /** Starts or stops sending answers, which only the leader does. */
  void answerThrough(@Nullable ClusterEgress newEgress) {
    if (egress != null) {
      egress.close();
    }
    egress = newEgress;
  }

  int flush() {
    return egress == null ? 0 : egress.flush();
  }
}
