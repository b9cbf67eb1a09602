package dev.tutti.gloo.transport;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/** Moves bytes as user messages without a signature, as PyTorch ranks do. */
final class RawMessages {
  private final UserMessages messages;

  RawMessages(Transport transport) {
    messages = new UserMessages(transport);
  }

  void send(Operation operation, int peer, long slot, MemorySegment segment, long length) {
    messages.start(operation, true, peer, slot, 0, segment, length);
  }

  void receive(Operation operation, int peer, long slot, MemorySegment segment, long length) {
    messages.start(operation, false, peer, slot, 0, segment, length);
  }

  void receiveAny(Operation operation, long slot, MemorySegment segment, long length) {
    receive(operation, Request.ANY, slot, segment, length);
  }

  boolean await(Operation operation, long deadline) {
    return messages.await(operation, deadline);
  }
}
