package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.gloo.spi.RankNotes;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A matcher of sends and receives, on the host, by source, tag, and order. Thread-safe.
 *
 * <p>A sender announces its message. The receiver finds the first receive that fits, enqueues its
 * part into the pair's stream, and lets the sender do the same. Thus parts run only when both sides
 * are ready, in the same order on both, and a message of a different size is noticed.
 */
public final class MessageMatcher implements RankNotes.Receiver, AutoCloseable {
  public static final int ANY = -1;

  private static final long ANNOUNCE = 1;
  private static final long GO = 2;
  private static final long MISFIT = 3;
  private static final long CLOSED = 4;

  private final CudaDevice device;
  private final RankNotes notes;
  private final int rank;
  private final CollectiveLauncher collectives;
  private final @Nullable MessageLauncher[] sends;
  private final @Nullable MessageLauncher[] receives;
  private final ArrayDeque<Announced> arrived = new ArrayDeque<>();
  private final ArrayDeque<Wanted> wanted = new ArrayDeque<>();
  private final Map<Long, Wanted> announced = new HashMap<>();
  private final BitSet left = new BitSet();
  private long nextId;
  private @Nullable Throwable aborted;
  private boolean closing;

  /** A message that a peer has announced. */
  private record Announced(int source, int tag, long bytes, long id) {}

  /**
   * A send or receive that waits for its other side; the event marks the point its stream had
   * reached.
   */
  private record Wanted(
      Operation op, int peer, int tag, long address, long bytes, CudaEvent before) {
    boolean fits(Announced message) {
      return (peer == ANY || peer == message.source) && tag == message.tag;
    }
  }

  /**
   * Creates the matcher of a rank.
   *
   * @param device this rank's device
   * @param notes the notes to and from the peers; closed together with this matcher
   * @param rank this rank's number
   * @param collectives notified of peers that close
   * @param sends the path to each peer
   * @param receives the path from each peer
   */
  public MessageMatcher(
      CudaDevice device,
      RankNotes notes,
      int rank,
      CollectiveLauncher collectives,
      @Nullable MessageLauncher[] sends,
      @Nullable MessageLauncher[] receives) {
    this.device = device;
    this.notes = notes;
    this.rank = rank;
    this.collectives = collectives;
    this.sends = sends;
    this.receives = receives;
  }

  private Wanted wanted(Operation op, int peer, int tag, long address, long bytes) {
    CudaStream caller = device.currentStream();
    if (caller.isCapturing()) {
      throw new UnsupportedOperationException(
          op.type().label() + " on rank " + rank + ": messages cannot be captured into a graph");
    }
    if (peer == rank || (peer != ANY && path(sends, peer) == null)) {
      throw new IllegalArgumentException("cannot send to or receive from rank " + peer);
    }
    return new Wanted(op, peer, tag, address, bytes, caller.record());
  }

  /** Announces a message. */
  public void send(Operation op, int peer, int tag, long address, long bytes) {
    Wanted own = wanted(op, peer, tag, address, bytes);
    synchronized (this) {
      throwIfAborted(own);
      throwIfLeft(own);
      long id = nextId++;
      announced.put(id, own);
      try {
        notes.send(peer, ANNOUNCE, tag, bytes, id);
      } catch (RuntimeException e) {
        announced.remove(id);
        own.before.close();
        throw e;
      }
    }
  }

  /** Receives the first message that fits, now or when it arrives. */
  public void receive(Operation op, int peer, int tag, long address, long bytes) {
    Wanted own = wanted(op, peer, tag, address, bytes);
    synchronized (this) {
      throwIfAborted(own);
      Iterator<Announced> messages = arrived.iterator();
      while (messages.hasNext()) {
        Announced message = messages.next();
        if (own.fits(message)) {
          messages.remove();
          take(own, message);
          return;
        }
      }
      throwIfLeft(own);
      wanted.add(own);
    }
  }

  private void throwIfAborted(Wanted own) {
    Throwable cause = aborted;
    if (cause != null) {
      own.before.close();
      if (cause instanceof PeerLostException lost) {
        throw new PeerLostException(lost.peer(), String.valueOf(lost.getMessage()), lost);
      }
      throw new BackendException("the group was aborted", cause);
    }
  }

  private void throwIfLeft(Wanted own) {
    if (own.peer != ANY && left.get(own.peer)) {
      own.before.close();
      throw CollectiveLauncher.closed(own.peer);
    }
  }

  @Override
  public synchronized void take(int sender, long kind, long a, long b, long c) {
    if (aborted != null) {
      return;
    }
    if (kind == ANNOUNCE) {
      arrive(new Announced(sender, (int) a, b, c));
      return;
    }
    if (kind == CLOSED) {
      collectives.leave(sender, a);
      leave(sender);
      return;
    }
    Wanted own = announced.remove(a);
    if (own == null) {
      return;
    }
    if (kind == GO) {
      launch(own, path(sends, sender), ChannelEvent.NO_SOURCE);
    } else if (kind == MISFIT) {
      own.before.close();
      own.op.fail(misfit(own.bytes, sender, b, own.tag), -1);
    }
  }

  /**
   * Fails the messages that wait for a peer that closed: everything it had announced has already
   * arrived.
   */
  private synchronized void leave(int peer) {
    left.set(peer);
    failMessages(wanted, peer);
    failMessages(announced.values(), peer);
  }

  private static void failMessages(Collection<Wanted> waiting, int peer) {
    Iterator<Wanted> all = waiting.iterator();
    while (all.hasNext()) {
      Wanted own = all.next();
      if (own.peer == peer) {
        all.remove();
        own.before.close();
        own.op.fail(CollectiveLauncher.closed(peer), peer);
      }
    }
  }

  private void arrive(Announced message) {
    Iterator<Wanted> receivers = wanted.iterator();
    while (receivers.hasNext()) {
      Wanted own = receivers.next();
      if (own.op.isDone()) {
        receivers.remove();
        own.before.close();
      } else if (own.fits(message)) {
        receivers.remove();
        take(own, message);
        return;
      }
    }
    arrived.add(message);
  }

  private void take(Wanted own, Announced message) {
    if (own.bytes != message.bytes) {
      own.before.close();
      own.op.fail(misfit(message.bytes, rank, own.bytes, own.tag), -1);
      tell(own, message.source, MISFIT, message.id, own.bytes);
      return;
    }
    launch(own, path(receives, message.source), message.source);
    tell(own, message.source, GO, message.id, 0);
  }

  private void tell(Wanted own, int peer, long kind, long id, long bytes) {
    try {
      notes.send(peer, kind, id, bytes, 0);
    } catch (RuntimeException e) {
      own.op.fail(e, peer);
    }
  }

  private static PeerMismatchException misfit(long sent, int receiver, long expected, int tag) {
    return new PeerMismatchException(
        "a message of %s bytes with tag %s arrived for a tensor of %s bytes on rank %s"
            .formatted(sent, tag, expected, receiver));
  }

  private void launch(Wanted own, @Nullable MessageLauncher path, int source) {
    try {
      if (path == null) {
        throw new IllegalArgumentException("cannot send to or receive from rank " + own.peer);
      }
      if (own.bytes > 0) {
        path.start(own.op, own.address, own.bytes, own.before, source);
        return;
      }
      own.before.close();
      if (source == ChannelEvent.NO_SOURCE) {
        own.op.complete();
      } else {
        own.op.completeFrom(source);
      }
    } catch (RuntimeException e) {
      own.before.close();
      own.op.fail(e, -1);
    }
  }

  private static @Nullable MessageLauncher path(@Nullable MessageLauncher[] paths, int peer) {
    return peer < 0 || peer >= paths.length ? null : paths[peer];
  }

  @Override
  public void fail(Throwable cause, int peer) {
    List<Operation> waiting = new ArrayList<>();
    synchronized (this) {
      if (closing || (peer >= 0 && left.get(peer))) {
        return;
      }
      wanted.forEach(own -> waiting.add(own.op));
      announced.values().forEach(own -> waiting.add(own.op));
    }
    abort(cause);
    waiting.forEach(op -> op.fail(cause, peer));
  }

  /** Forgets the waiting messages; the caller that aborts ends their operations. */
  public void abort(Throwable cause) {
    synchronized (this) {
      if (aborted != null) {
        return;
      }
      aborted = cause;
      wanted.forEach(own -> own.before.close());
      announced.values().forEach(own -> own.before.close());
      wanted.clear();
      announced.clear();
      arrived.clear();
    }
    notes.abort(cause);
  }

  /** Starts listening to the peers. */
  public void listen() {
    notes.listen(this);
  }

  /** Notifies the peers, unless the group failed, and closes the notes. */
  @Override
  public void close() {
    boolean isGood;
    synchronized (this) {
      closing = true;
      isGood = aborted == null;
    }
    long last = collectives.lastSequence();
    for (int peer = 0; isGood && peer < sends.length; peer++) {
      if (peer != rank) {
        notes.send(peer, CLOSED, last, 0, 0);
      }
    }
    notes.close();
  }
}
