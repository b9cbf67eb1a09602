package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages of collectives among some ranks of a group, which it numbers from 0.
 *
 * <p>One thread at a time may use it; that thread itself moves the bytes while it waits.
 */
public abstract class Endpoint {
  /** The length in bytes up to which some messages leave before the receiver announces itself. */
  public static final int MOST_EARLY_BYTES = EarlyMessage.MAX_BYTES;

  /** Returns the number of this rank among the ranks that this endpoint connects. */
  public abstract int rank();

  /** Returns the number of ranks that this endpoint connects. */
  public abstract int size();

  /**
   * Returns the rank in the group that corresponds to a number.
   *
   * @param number at least 0, and less than {@link #size()}
   */
  public abstract int rankInGroup(int number);

  /** Returns the transport over whose pairs the messages travel. */
  protected abstract Transport transport();

  /**
   * Begins a send.
   *
   * @param peer the number of another rank
   * @param slot identifies the exchange
   * @param segment the bytes, which must not change until the request has been awaited
   * @param offset the offset of the first byte
   * @param length the number of bytes
   * @return the request, which must be awaited exactly once
   */
  public final Request send(int peer, long slot, MemorySegment segment, long offset, long length) {
    return begin(true, peer, slot, segment, offset, length, null, false);
  }

  /**
   * Begins a send; {@link #awaitSent} waits for it.
   *
   * @param peer the number of another rank
   * @param slot identifies the exchange
   * @param segment the bytes, which must not change until they are sent
   * @param offset the offset of the first byte
   * @param length the number of bytes
   */
  public final void sendDetached(
      int peer, long slot, MemorySegment segment, long offset, long length) {
    begin(true, peer, slot, segment, offset, length, null, true);
  }

  /**
   * Begins a receive.
   *
   * @param peer the number of another rank
   * @param slot identifies the exchange
   * @param segment the memory to receive into
   * @param offset the offset of the first byte
   * @param length the number of bytes that must arrive
   * @return the request, which must be awaited exactly once
   */
  public final Request receive(
      int peer, long slot, MemorySegment segment, long offset, long length) {
    return begin(false, peer, slot, segment, offset, length, null, false);
  }

  /**
   * Begins a receive that combines bytes, as they arrive, with those already in their place.
   *
   * @param peer the number of another rank
   * @param slot identifies the exchange
   * @param segment the memory to receive into
   * @param offset the offset of the first byte
   * @param length the number of bytes that must arrive, in whole elements
   * @param combiner how to combine the bytes
   * @return the request, which must be awaited exactly once
   */
  public final Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner) {
    return begin(false, peer, slot, segment, offset, length, combiner, false);
  }

  Request begin(
      boolean sends,
      int peer,
      long slot,
      MemorySegment segment,
      long offset,
      long length,
      @Nullable Combiner combiner,
      boolean detached) {
    Transport transport = transport();
    Requests requests = transport.requests;
    transport.progress.lock.lock();
    try {
      Request request = requests.obtain(sends, rankInGroup(peer), slot, null);
      request.memory(segment, offset, length);
      request.signature = transport.signature();
      request.combiner = combiner;
      if (detached) {
        requests.detach(request);
      }
      transport.begin(request);
      return request;
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /**
   * Waits for a request and releases it.
   *
   * @param request a request from {@link #send} or {@link #receive}; must not be used afterwards
   * @param operation the operation whose deadline applies
   * @throws PeerLostException if the peer has been lost or violated the protocol
   * @throws TimeoutException if the deadline passed first
   * @throws Exception the reason why the group ended, once it has
   */
  public final void await(Request request, Operation operation) throws Exception {
    await(request, operation.deadlineNanos());
  }

  /**
   * Waits for a request and releases it.
   *
   * @param request a request from {@link #send} or {@link #receive}; must not be used afterwards
   * @param deadline the deadline in terms of the clock of the context
   * @throws Exception as in the other {@code await}
   */
  public void await(Request request, long deadline) throws Exception {
    Transport transport = transport();
    boolean ended =
        request.state != Request.PENDING || transport.progress.drive(request, deadline, false);
    transport.progress.lock.lock();
    try {
      if (!ended) {
        transport.transportFailure.throwIfBroken();
        throw new TimeoutException(
            transport.self()
                + ": the "
                + request.describe()
                + " did not complete before the deadline");
      }
      Throwable error = request.error;
      if (error != null) {
        throw TransportFailure.rethrowable(error);
      }
      transport.requests.recycle(request);
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /**
   * Waits for all sends that {@link #sendDetached} began.
   *
   * @param operation the operation whose deadline applies
   * @throws Exception as in {@link #await}
   */
  public void awaitSent(Operation operation) throws Exception {
    Transport transport = transport();
    boolean ended = transport.progress.drive(transport.allSent, operation.deadlineNanos(), false);
    transport.progress.lock.lock();
    try {
      transport.transportFailure.throwIfBroken();
      Throwable error = transport.requests.detachedError();
      if (error != null) {
        throw TransportFailure.rethrowable(error);
      }
      if (!ended) {
        throw new TimeoutException(
            transport.self() + ": not all messages were sent before the deadline");
      }
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /**
   * Writes messages that were begun, as far as sockets accept them; called before a computation and
   * at the end of an operation.
   */
  public void flush() {
    Transport transport = transport();
    transport.progress.lock.lock();
    try {
      transport.progress.flushAndLeave();
      transport.deliver();
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /**
   * Returns why nothing more can be expected of a peer, or null. Any thread may call this.
   *
   * @param peer the number of a rank
   */
  public @Nullable Throwable failureOf(int peer) {
    Transport transport = transport();
    int rank = rankInGroup(peer);
    transport.progress.lock.lock();
    try {
      Throwable cause = transport.transportFailure.cause();
      return cause == null && rank != transport.rank()
          ? transport.pairs.get(rank).failure()
          : cause;
    } finally {
      transport.progress.lock.unlock();
    }
  }

  /**
   * Connects to a peer, unless that has already happened, so that {@link #failureOf} finds its end
   * directly and not only through its neighbors. Any thread may call this.
   *
   * @param peer the number of a rank
   */
  public void watch(int peer) {
    Transport transport = transport();
    int rank = rankInGroup(peer);
    transport.progress.lock.lock();
    try {
      if (rank != transport.rank()) {
        transport.pairs.want(transport.pairs.get(rank));
      }
    } finally {
      transport.progress.lock.unlock();
    }
  }
}
