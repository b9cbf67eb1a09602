package dev.tutti.gloo.transport;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Queues the messages that wait behind the one being written. */
final class OutQueue {
  private int[] opcodes = new int[16];
  private long[] slots = new long[16];
  private long[] lengths = new long[16];
  private long[] signatures = new long[16];
  private @Nullable Request[] requests = new @Nullable Request[16];
  private int head;
  private int size;

  boolean isEmpty() {
    return size == 0;
  }

  void add(int opcode, long slot, long length, long signature, @Nullable Request request) {
    if (size == opcodes.length) {
      grow();
    }
    int at = head + size & opcodes.length - 1;
    opcodes[at] = opcode;
    slots[at] = slot;
    lengths[at] = length;
    signatures[at] = signature;
    requests[at] = request;
    size++;
  }

  int opcode() {
    return opcodes[head];
  }

  long slot() {
    return slots[head];
  }

  long length() {
    return lengths[head];
  }

  long signature() {
    return signatures[head];
  }

  @Nullable Request request() {
    return requests[head];
  }

  void remove() {
    requests[head] = null;
    head = head + 1 & opcodes.length - 1;
    size--;
  }

  /** Takes the requests of all messages and discards the messages. */
  void drainTo(RequestQueue target) {
    while (!isEmpty()) {
      Request request = request();
      if (request != null) {
        target.add(request);
      }
      remove();
    }
  }

  private void grow() {
    int old = opcodes.length;
    opcodes = Arrays.copyOf(opcodes, 2 * old);
    slots = Arrays.copyOf(slots, 2 * old);
    lengths = Arrays.copyOf(lengths, 2 * old);
    signatures = Arrays.copyOf(signatures, 2 * old);
    requests = Arrays.copyOf(requests, 2 * old);
    // The queue is full: what was in front of its head now follows its former end.
    System.arraycopy(opcodes, 0, opcodes, old, head);
    System.arraycopy(slots, 0, slots, old, head);
    System.arraycopy(lengths, 0, lengths, old, head);
    System.arraycopy(signatures, 0, signatures, old, head);
    System.arraycopy(requests, 0, requests, old, head);
    Arrays.fill(requests, 0, head, null);
  }
}
