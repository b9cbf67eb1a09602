package dev.tutti.fake;

import dev.tutti.MismatchException;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Brings sends and receives of a threaded group together. A send is done when its receive is, as
 * with Gloo: nothing is buffered.
 */
final class Mailbox {
  /*
   * Each rank has two lists in order of their start: sends to it that no receive took, and receives
   * that no send fits. A new send takes the first receive that fits, and the other way round, so
   * messages of one pair and tag never overtake each other. What ended otherwise meanwhile (deadline,
   * failure) is dropped when it is met. The thread that brings the second half copies the data, after
   * it released the hub's lock.
   */
  private static final int ANY = -1;

  private final Hub hub;
  private final List<List<Message>> sends = new ArrayList<>();
  private final List<List<Message>> receives = new ArrayList<>();

  /**
   * Is one half of a message.
   *
   * @param op to be ended
   * @param tensor data or room for it
   * @param source the sending rank, or {@link #ANY}
   * @param target the receiving rank
   * @param tag as given
   */
  private record Message(Operation op, Tensor tensor, int source, int target, int tag) {
    boolean fits(Message other) {
      return tag == other.tag && (source == other.source || source == ANY || other.source == ANY);
    }

    String describe() {
      return op.type().label()
          + " #"
          + op.sequenceNumber()
          + " "
          + tensor.describe()
          + " tag "
          + tag;
    }
  }

  Mailbox(Hub hub, int size) {
    this.hub = hub;
    for (int rank = 0; rank < size; rank++) {
      sends.add(new ArrayList<>());
      receives.add(new ArrayList<>());
    }
  }

  void send(int rank, Operation op, Tensor tensor, int peer, int tag) {
    post(rank, new Message(op, tensor, rank, peer, tag), true);
  }

  void recv(int rank, Operation op, Tensor tensor, int peer, int tag) {
    post(rank, new Message(op, tensor, peer, rank, tag), false);
  }

  void recvAnySource(int rank, Operation op, Tensor tensor, int tag) {
    post(rank, new Message(op, tensor, ANY, rank, tag), false);
  }

  private void post(int rank, Message message, boolean sending) {
    hub.lock();
    try {
      Throwable failure = hub.failure(rank);
      int peer = sending ? message.target : message.source;
      if (failure != null) {
        hub.afterUnlock(() -> message.op.fail(failure, -1));
        return;
      }
      List<List<Message>> others = sending ? receives : sends;
      Message other = take(others.get(message.target), message);
      if (other != null) {
        Message send = sending ? message : other;
        Message recv = sending ? other : message;
        hub.afterUnlock(() -> transfer(send, recv));
      } else if (peer != ANY && hub.hasLeft(peer)) {
        hub.afterUnlock(() -> message.op.fail(hub.closed(peer), peer));
      } else {
        (sending ? sends : receives).get(message.target).add(message);
      }
    } finally {
      hub.unlock();
    }
  }

  private static @Nullable Message take(List<Message> waiting, Message wanted) {
    for (Iterator<Message> each = waiting.iterator(); each.hasNext(); ) {
      Message candidate = each.next();
      if (candidate.op.isDone()) {
        each.remove();
      } else if (candidate.fits(wanted)) {
        each.remove();
        return candidate;
      }
    }
    return null;
  }

  private static void transfer(Message send, Message recv) {
    if (send.tensor.dtype() != recv.tensor.dtype() || send.tensor.numel() != recv.tensor.numel()) {
      String text =
          "rank "
              + send.source
              + " called "
              + send.describe()
              + " to rank "
              + send.target
              + ", which called "
              + recv.describe();
      send.op.fail(new MismatchException(text), -1);
      recv.op.fail(new MismatchException(text), -1);
      return;
    }
    try {
      recv.tensor.copyFrom(send.tensor);
    } catch (RuntimeException e) {
      send.op.fail(e, -1);
      recv.op.fail(e, -1);
      return;
    }
    recv.op.completeFrom(send.source);
    send.op.complete();
  }

  /** Takes out everything that waits. Lock held. */
  List<Operation> drain() {
    List<Operation> ops = new ArrayList<>();
    for (List<List<Message>> lists : List.of(sends, receives)) {
      for (List<Message> list : lists) {
        list.forEach(message -> ops.add(message.op));
        list.clear();
      }
    }
    return ops;
  }

  /** Takes out everything that waits for one rank. Lock held. */
  List<Operation> drainPeer(int rank) {
    List<Operation> ops = new ArrayList<>();
    sends.get(rank).forEach(message -> ops.add(message.op));
    sends.get(rank).clear();
    for (List<Message> list : receives) {
      for (Iterator<Message> each = list.iterator(); each.hasNext(); ) {
        Message message = each.next();
        if (message.source == rank) {
          ops.add(message.op);
          each.remove();
        }
      }
    }
    return ops;
  }
}
