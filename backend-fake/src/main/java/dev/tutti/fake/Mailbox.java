package dev.tutti.fake;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * Matches the sends and receives of a threaded group. A send completes when its receive does, as
 * with Gloo: nothing is buffered.
 */
final class Mailbox {
  /*
   * Each rank has two lists in the order in which operations started: sends to it that no receive
   * has taken, and receives that match no send. A new send takes the first receive that matches,
   * and vice versa, so messages of one pair and tag never overtake each other. An operation that
   * has meanwhile ended otherwise (deadline, failure) is dropped when it is encountered. The thread
   * that posts the second half copies the data, after releasing the hub's lock. Meanwhile it holds
   * the read lock of "moves", and checks the state of the group under it. A thread that acquires
   * the write lock after a failure thus finds nothing being copied. Only then does the
   * group end what is pending.
   */
  private static final int ANY = -1;

  private final Hub hub;
  private final List<List<Message>> sends = new ArrayList<>();
  private final List<List<Message>> receives = new ArrayList<>();
  private final ReadWriteLock moves = new ReentrantReadWriteLock();
  private volatile boolean drained;

  /**
   * One half of a message.
   *
   * @param op the operation to be ended
   * @param tensor the data, or the memory to receive it
   * @param source the sending rank, or {@link #ANY}
   * @param target the receiving rank
   * @param tag the tag of the message
   */
  private record Message(Operation op, Tensor tensor, int source, int target, int tag) {
    boolean fits(Message other) {
      return tag == other.tag && (source == other.source || source == ANY || other.source == ANY);
    }

    String describe() {
      return "%s #%s %s tag %s"
          .formatted(op.type().label(), op.sequenceNumber(), tensor.describe(), tag);
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
      if (peer == ANY && hub.isAlone(rank)) {
        peer = hub.lastLeft();
      }
      int awaited = peer;
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
      } else if (awaited != ANY && hub.hasLeft(awaited)) {
        hub.afterUnlock(() -> message.op.fail(hub.closed(awaited), awaited));
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

  private void transfer(Message send, Message recv) {
    if (send.tensor.dtype() != recv.tensor.dtype() || send.tensor.numel() != recv.tensor.numel()) {
      String text =
          "rank %s called %s to rank %s, which called %s"
              .formatted(send.source, send.describe(), send.target, recv.describe());
      send.op.fail(new PeerMismatchException(text), -1);
      recv.op.fail(new PeerMismatchException(text), -1);
      return;
    }
    boolean moved;
    try {
      moved = move(send, recv);
    } catch (RuntimeException e) {
      send.op.fail(e, -1);
      recv.op.fail(e, -1);
      return;
    }
    if (moved) {
      recv.op.completeFrom(send.source);
      send.op.complete();
    } else {
      postAgain(send.source, send, true);
      postAgain(recv.target, recv, false);
    }
  }

  /** Copies the data, unless the group has failed or either half has ended. */
  private boolean move(Message send, Message recv) {
    moves.readLock().lock();
    try {
      if (drained || send.op.isDone() || recv.op.isDone()) {
        return false;
      }
      recv.tensor.copyFrom(send.tensor);
      return true;
    } finally {
      moves.readLock().unlock();
    }
  }

  private void postAgain(int rank, Message message, boolean sending) {
    if (!message.op.isDone()) {
      post(rank, message, sending);
    }
  }

  /**
   * Waits until nothing is being copied anymore; called after {@link #drain}, without holding the
   * lock.
   */
  @SuppressWarnings("LockNotBeforeTry")
  void awaitMoves() {
    moves.writeLock().lock();
    moves.writeLock().unlock();
  }

  /** Removes all waiting operations, and prevents any copies from now on. */
  List<Operation> drain() {
    assert hub.isLockHeld();
    drained = true;
    List<Operation> ops = new ArrayList<>();
    for (List<List<Message>> lists : List.of(sends, receives)) {
      for (List<Message> list : lists) {
        list.forEach(message -> ops.add(message.op));
        list.clear();
      }
    }
    return ops;
  }

  /** Removes all operations that wait for one rank, which has left. */
  List<Operation> drainPeer(int rank) {
    assert hub.isLockHeld();
    List<Operation> ops = new ArrayList<>();
    sends.get(rank).forEach(message -> ops.add(message.op));
    sends.get(rank).clear();
    for (List<Message> list : receives) {
      for (Iterator<Message> each = list.iterator(); each.hasNext(); ) {
        Message message = each.next();
        boolean forAny = message.source == ANY && hub.isAlone(message.target);
        if (message.source == rank || forAny) {
          ops.add(message.op);
          each.remove();
        }
      }
    }
    return ops;
  }
}
