package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Connects some of the ranks of a transport, including this one. */
public final class Members implements Endpoint {
  private final Transport transport;
  private final int[] ranks;
  private final int own;

  /**
   * Creates an endpoint that numbers ranks by their position in a list.
   *
   * @param transport connects the ranks
   * @param ranks distinct ranks of the transport
   * @throws IllegalArgumentException if this rank is not among them
   */
  public Members(Transport transport, int[] ranks) {
    this.transport = transport;
    this.ranks = ranks.clone();
    int found = -1;
    for (int i = 0; i < ranks.length; i++) {
      if (ranks[i] == transport.rank()) {
        found = i;
      }
    }
    if (found < 0) {
      throw new IllegalArgumentException(transport.self() + " is not among the members");
    }
    own = found;
  }

  @Override
  public int rank() {
    return own;
  }

  @Override
  public int size() {
    return ranks.length;
  }

  @Override
  public int rankInGroup(int number) {
    return ranks[number];
  }

  @Override
  public Request send(int peer, long slot, MemorySegment segment, long offset, long length) {
    return transport.send(ranks[peer], slot, segment, offset, length);
  }

  @Override
  public void sendDetached(int peer, long slot, MemorySegment segment, long offset, long length) {
    transport.sendDetached(ranks[peer], slot, segment, offset, length);
  }

  @Override
  public Request receive(int peer, long slot, MemorySegment segment, long offset, long length) {
    return transport.receive(ranks[peer], slot, segment, offset, length);
  }

  @Override
  public Request receiveCombining(
      int peer, long slot, MemorySegment segment, long offset, long length, Combiner combiner) {
    return transport.receiveCombining(ranks[peer], slot, segment, offset, length, combiner);
  }

  @Override
  public void await(Request request, Operation operation) throws Exception {
    transport.await(request, operation);
  }

  @Override
  public void awaitSent(Operation operation) throws Exception {
    transport.awaitSent(operation);
  }

  @Override
  public void flush() {
    transport.flush();
  }

  @Override
  public @Nullable Throwable failureOf(int peer) {
    return transport.failureOf(ranks[peer]);
  }

  @Override
  public void watch(int peer) {
    transport.watch(ranks[peer]);
  }
}
