package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** An endpoint whose messages travel over the pairs of a transport. */
abstract class PairEndpoint implements Endpoint {
  /** Returns the transport that holds the pairs. */
  abstract Transport transport();

  @Override
  public final Request send(int peer, long slot, MemorySegment segment, long offset, long length) {
    return begin(true, peer, slot, segment, offset, length, null, false);
  }

  @Override
  public final void sendDetached(
      int peer, long slot, MemorySegment segment, long offset, long length) {
    begin(true, peer, slot, segment, offset, length, null, true);
  }

  @Override
  public final Request receive(
      int peer, long slot, MemorySegment segment, long offset, long length) {
    return begin(false, peer, slot, segment, offset, length, null, false);
  }

  @Override
  public final Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner) {
    return begin(false, peer, slot, segment, offset, length, combiner, false);
  }

  private Request begin(
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

  @Override
  public final void await(Request request, Operation operation) throws Exception {
    await(request, operation.deadlineNanos());
  }

  /**
   * Waits for a request and releases it.
   *
   * @param request a request from {@link #send} or {@link #receive}; must not be used afterwards
   * @param deadline the deadline in terms of {@link System#nanoTime()}
   * @throws Exception as in the other {@code await}
   */
  public final void await(Request request, long deadline) throws Exception {
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

  @Override
  public final void awaitSent(Operation operation) throws Exception {
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

  @Override
  public final void flush() {
    Transport transport = transport();
    transport.progress.lock.lock();
    try {
      transport.progress.flushAndLeave();
      transport.deliver();
    } finally {
      transport.progress.lock.unlock();
    }
  }

  @Override
  public final @Nullable Throwable failureOf(int peer) {
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

  @Override
  public final void watch(int peer) {
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
