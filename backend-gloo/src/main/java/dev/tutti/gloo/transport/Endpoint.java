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
public interface Endpoint {
  /** Returns the number of this rank among the ranks that this endpoint connects. */
  int rank();

  /** Returns the number of ranks that this endpoint connects. */
  int size();

  /**
   * Returns the rank in the group that corresponds to a number.
   *
   * @param number at least 0, and less than {@link #size()}
   */
  int rankInGroup(int number);

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
  Request send(int peer, long slot, MemorySegment segment, long offset, long length);

  /**
   * Begins a send; {@link #awaitSent} waits for it.
   *
   * @param peer the number of another rank
   * @param slot identifies the exchange
   * @param segment the bytes, which must not change until they are sent
   * @param offset the offset of the first byte
   * @param length the number of bytes
   */
  void sendDetached(int peer, long slot, MemorySegment segment, long offset, long length);

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
  Request receive(int peer, long slot, MemorySegment segment, long offset, long length);

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
  Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner);

  /**
   * Waits for a request and releases it.
   *
   * @param request a request from {@link #send} or {@link #receive}; must not be used afterwards
   * @param operation the operation whose deadline applies
   * @throws PeerLostException if the peer has been lost or violated the protocol
   * @throws TimeoutException if the deadline passed first
   * @throws Exception the reason why the group ended, once it has
   */
  void await(Request request, Operation operation) throws Exception;

  /**
   * Waits for all sends that {@link #sendDetached} began.
   *
   * @param operation the operation whose deadline applies
   * @throws Exception as in {@link #await}
   */
  void awaitSent(Operation operation) throws Exception;

  /**
   * Writes messages that were begun, as far as sockets accept them; called before a computation and
   * at the end of an operation.
   */
  void flush();

  /**
   * Returns why nothing more can be expected of a peer, or null. Any thread may call this.
   *
   * @param peer the number of a rank
   */
  @Nullable Throwable failureOf(int peer);

  /**
   * Connects to a peer, unless that has already happened, so that {@link #failureOf} learns of its
   * end directly and not only from its neighbors. Any thread may call this.
   *
   * @param peer the number of a rank
   */
  default void watch(int peer) {}
}
