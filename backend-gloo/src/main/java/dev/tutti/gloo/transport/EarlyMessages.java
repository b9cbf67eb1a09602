package dev.tutti.gloo.transport;

import org.jspecify.annotations.Nullable;

/** Queues messages that came early, first in, first out, by their own links. */
final class EarlyMessages {
  private @Nullable EarlyMessage head;
  private @Nullable EarlyMessage tail;

  void add(EarlyMessage message) {
    message.next = null;
    if (tail == null) {
      head = message;
    } else {
      tail.next = message;
    }
    tail = message;
  }

  @Nullable EarlyMessage poll() {
    EarlyMessage first = head;
    if (first != null) {
      head = first.next;
      if (head == null) {
        tail = null;
      }
      first.next = null;
    }
    return first;
  }
}
