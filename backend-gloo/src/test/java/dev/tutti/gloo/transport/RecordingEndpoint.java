package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An endpoint that moves nothing and remembers what one rank sends and receives. */
public final class RecordingEndpoint extends Endpoint {
  private final int rank;
  private final int size;
  private final List<Message> messages = new ArrayList<>();

  /** A message to or from a peer. */
  public record Message(boolean sent, int peer, long bytes, boolean reduces) {}

  public RecordingEndpoint(int rank, int size) {
    this.rank = rank;
    this.size = size;
  }

  /** Returns the messages, in the order in which they were begun. */
  public List<Message> messages() {
    return messages;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public int rankInGroup(int number) {
    return number;
  }

  @Override
  protected Transport transport() {
    throw new UnsupportedOperationException();
  }

  @Override
  Request begin(
      boolean sends,
      int peer,
      long slot,
      MemorySegment segment,
      long offset,
      long length,
      @Nullable Combiner combiner,
      boolean detached) {
    messages.add(new Message(sends, peer, length, combiner != null));
    return new Request();
  }

  @Override
  public void await(Request request, long deadline) {}

  @Override
  public void awaitSent(dev.tutti.spi.Operation operation) {}

  @Override
  public void flush() {}
}
