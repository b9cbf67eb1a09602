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
    int[] from = new int[old];
    for (int i = 0; i < old; i++) {
      from[i] = head + i & old - 1;
    }
    int[] newOpcodes = new int[old * 2];
    long[] newSlots = new long[old * 2];
    long[] newLengths = new long[old * 2];
    long[] newSignatures = new long[old * 2];
    @Nullable Request[] newRequests = Arrays.copyOf(requests, old * 2);
    for (int i = 0; i < old; i++) {
      newOpcodes[i] = opcodes[from[i]];
      newSlots[i] = slots[from[i]];
      newLengths[i] = lengths[from[i]];
      newSignatures[i] = signatures[from[i]];
      newRequests[i] = requests[from[i]];
    }
    opcodes = newOpcodes;
    slots = newSlots;
    lengths = newLengths;
    signatures = newSignatures;
    requests = newRequests;
    head = 0;
  }
}
