package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages of collectives between some ranks of a group, which it numbers from 0.
 *
 * <p>One thread at a time uses it; that thread moves the bytes by itself while it waits.
 */
public interface Endpoint {
  /** Returns the number of this rank among those that it connects. */
  int rank();

  /** Returns how many ranks it connects. */
  int size();

  /**
   * Returns a rank of the group.
   *
   * @param number 0 up to {@link #size()}
   */
  int rankInGroup(int number);

  /**
   * Begins to send.
   *
   * @param peer number of another rank
   * @param slot names the exchange
   * @param segment holds the bytes; must stay as it is until the request is awaited
   * @param offset first byte
   * @param length number of bytes
   * @return to be awaited once
   */
  Request send(int peer, long slot, MemorySegment segment, long offset, long length);

  /**
   * Begins to send; {@link #awaitSent} waits for it.
   *
   * @param peer number of another rank
   * @param slot names the exchange
   * @param segment holds the bytes; must stay as it is until they are sent
   * @param offset first byte
   * @param length number of bytes
   */
  void sendDetached(int peer, long slot, MemorySegment segment, long offset, long length);

  /**
   * Begins to receive.
   *
   * @param peer number of another rank
   * @param slot names the exchange
   * @param segment where the bytes go
   * @param offset first byte
   * @param length bytes that must come
   * @return to be awaited once
   */
  Request receive(int peer, long slot, MemorySegment segment, long offset, long length);

  /**
   * Begins to receive and combines what comes, as it comes, with what is in its place.
   *
   * @param peer number of another rank
   * @param slot names the exchange
   * @param segment where the bytes go
   * @param offset first byte
   * @param length bytes that must come, whole elements
   * @param combiner how to combine
   * @return to be awaited once
   */
  Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner);

  /**
   * Waits for a request and forgets it.
   *
   * @param request from {@link #send} or {@link #receive}; not to be used any more
   * @param operation whose deadline counts
   * @throws PeerLostException if the peer is gone or broke the protocol
   * @throws TimeoutException if the deadline came first
   * @throws Exception why the group ended, after that
   */
  void await(Request request, Operation operation) throws Exception;

  /**
   * Waits for all that {@link #sendDetached} began.
   *
   * @param operation whose deadline counts
   * @throws Exception as {@link #await}
   */
  void awaitSent(Operation operation) throws Exception;

  /** Writes what was begun, as far as sockets take it; before a computation, and at an end. */
  void flush();

  /**
   * Tells why nothing more can be expected of a peer, if that is so. Any thread.
   *
   * @param peer number of a rank
   */
  @Nullable Throwable failureOf(int peer);

  /**
   * Connects with a peer, if that has not happened yet, so that {@link #failureOf} hears of its end
   * from itself and not only from its neighbors. Any thread.
   *
   * @param peer number of a rank
   */
  default void watch(int peer) {}
}
