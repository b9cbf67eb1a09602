package dev.tutti.cuda.share;

import dev.tutti.spi.PeerLostException;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.channels.Selector;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The connections to peers, each made when it is first needed. Any thread may send, and writes what
 * the socket accepts at once; the thread of the links writes the rest.
 */
final class OutgoingLinks {
  private final int rank;
  private final List<LinkAddress> peers;
  private final @Nullable SSLContext tls;
  private final JobToken token;
  private final Selector selector;
  private final @Nullable OutgoingLink[] links;
  private final ConcurrentLinkedQueue<OutgoingLink> blocked = new ConcurrentLinkedQueue<>();
  private final AtomicInteger unwritten = new AtomicInteger();

  OutgoingLinks(
      int rank,
      List<LinkAddress> peers,
      @Nullable SSLContext tls,
      JobToken token,
      Selector selector) {
    this.rank = rank;
    this.peers = peers;
    this.tls = tls;
    this.token = token;
    this.selector = selector;
    this.links = new @Nullable OutgoingLink[peers.size()];
  }

  /** Connects to a peer. */
  synchronized void connect(int peer) throws IOException {
    writeSoon(linkTo(peer));
  }

  /** Sends a note, as {@link RankLinks#send} does. */
  synchronized void send(int peer, long kind, long a, long b, long c) {
    try {
      OutgoingLink to = linkTo(peer);
      to.add(kind, a, b, c);
      writeSoon(to);
    } catch (IOException e) {
      throw new PeerLostException(peer, deaf(peer, e), e);
    }
  }

  private OutgoingLink linkTo(int peer) throws IOException {
    OutgoingLink to = links[peer];
    if (to == null) {
      to = OutgoingLink.connect(rank, peer, peers.get(peer), tls, token);
      links[peer] = to;
    }
    return to;
  }

  /** Writes now what can be written, and leaves the rest to the thread of the links. */
  private void writeSoon(OutgoingLink to) throws IOException {
    if (to.mustBeQueued()) {
      unwritten.incrementAndGet();
      blocked.add(to);
      selector.wakeup();
    }
  }

  private String deaf(int peer, IOException cause) {
    return "rank " + rank + ": rank " + peer + " no longer listens: " + cause.getMessage();
  }

  /** Continues all connections that could not be written; called by the thread of the links. */
  void flushBlocked(NoteReceiver receiver) throws IOException {
    for (int left = blocked.size(); left > 0; left--) {
      OutgoingLink next = blocked.poll();
      if (next == null) {
        return;
      }
      boolean written;
      try {
        written = next.flush();
      } catch (IOException e) {
        if (!forget(next)) {
          receiver.fail(new IOException(deaf(next.peer(), e), e), next.peer());
        }
        unwritten.decrementAndGet();
        next.close();
        continue;
      }
      if (written) {
        unwritten.decrementAndGet();
        next.deselect(selector);
      } else {
        next.select(selector);
        blocked.add(next);
      }
    }
  }

  /**
   * Forgets a connection that was lost before it carried notes; returns false if it had carried
   * any.
   */
  private synchronized boolean forget(OutgoingLink lost) {
    boolean unused = !lost.hasNotes();
    if (unused) {
      links[lost.peer()] = null;
    }
    return unused;
  }

  /** Tells whether sockets have accepted all that was sent. */
  boolean isWritten() {
    return unwritten.get() <= 0;
  }

  synchronized void close() throws IOException {
    for (OutgoingLink each : links) {
      if (each != null) {
        each.close();
      }
    }
  }
}
