package dev.tutti.gloo.transport;

import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Queues requests in FIFO order, linked through their own fields. */
final class RequestQueue {
  private @Nullable Request head;
  private @Nullable Request tail;

  boolean isEmpty() {
    return head == null;
  }

  void add(Request request) {
    request.next = null;
    if (tail == null) {
      head = request;
    } else {
      tail.next = request;
    }
    tail = request;
  }

  @Nullable Request poll() {
    Request first = head;
    if (first != null) {
      head = first.next;
      if (head == null) {
        tail = null;
      }
      first.next = null;
    }
    return first;
  }

  /** Removes the first request of a slot. */
  @Nullable Request poll(long slot) {
    Request before = null;
    for (Request request = head; request != null; request = request.next) {
      if (request.slot == slot) {
        if (before == null) {
          return poll();
        }
        before.next = request.next;
        if (request == tail) {
          tail = before;
        }
        request.next = null;
        return request;
      }
      before = request;
    }
    return null;
  }

  void forEach(Consumer<Request> action) {
    for (Request request = head; request != null; request = request.next) {
      action.accept(request);
    }
  }

  void moveTo(RequestQueue target) {
    Request request = poll();
    while (request != null) {
      target.add(request);
      request = poll();
    }
  }
}
