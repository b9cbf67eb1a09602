package dev.tutti.gloo.transport;

import dev.tutti.spi.PeerLostException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Holds the pairs of a transport, one for each other rank, and gets them connected. */
final class Pairs {
  private final Transport transport;
  private final int rank;
  private final int size;
  private final Pair[] others;
  private final boolean[] tutti;
  private @Nullable Listener listener;
  private int connectedCount;

  Pairs(Transport transport, int rank, int size) {
    this.transport = transport;
    this.rank = rank;
    this.size = size;
    others = new Pair[size - 1];
    tutti = new boolean[size];
    for (int i = 0; i < others.length; i++) {
      others[i] = new Pair(transport, i < rank ? i : i + 1);
    }
  }

  /** Returns the pair of another rank. */
  Pair get(int peer) {
    if (peer < 0 || peer >= size || peer == rank) {
      throw new IllegalArgumentException(
          transport.self() + ": peer must be another rank of 0.." + (size - 1) + ", not " + peer);
    }
    return others[peer < rank ? peer : peer - 1];
  }

  /** Tells whether a peer is a rank of Tutti, and not of PyTorch. */
  boolean isTutti(int peer) {
    return tutti[peer];
  }

  void listen(ServerSocketChannel server) throws IOException {
    listener = new Listener(transport, transport.progress.selector(), server);
  }

  void expect(int peer, PeerAddress address, long sequence) {
    tutti[peer] = address.tutti();
    if (listener != null) {
      listener.expect(get(peer), sequence);
    }
  }

  void connect(int peer, PeerAddress address, long sequence) throws IOException {
    tutti[peer] = address.tutti();
    InetSocketAddress socket = address.socket();
    Progress progress = transport.progress;
    progress.lock.lock();
    try {
      new Connector(transport, progress.selector(), get(peer), socket, sequence).start();
    } finally {
      progress.lock.unlock();
    }
  }

  /** Is told that a pair has its connection; the lock is held. */
  void connected(Pair pair, SocketChannel channel, SelectionKey key) {
    if (transport.breakdown.cause() != null || pair.failure() != null) {
      try {
        channel.close();
      } catch (IOException e) {
        transport.debug("a late connection did not close well", e);
      }
      return;
    }
    pair.connection.attach(channel, key);
    if (++connectedCount == others.length) {
      closeListener();
    }
  }

  /**
   * Waits until all peers are connected.
   *
   * @param deadline in terms of {@link System#nanoTime()}
   * @return the ranks that are not connected, empty if all are
   * @throws PeerLostException if a peer cannot be reached
   */
  List<Integer> awaitConnected(long deadline) throws Exception {
    Progress progress = transport.progress;
    progress.drive(
        () -> connectedCount == others.length || transport.breakdown.cause() != null,
        deadline,
        true);
    progress.lock.lock();
    try {
      transport.breakdown.throwIfBroken();
      return Arrays.stream(others)
          .filter(pair -> !pair.connection.isConnected())
          .map(pair -> pair.rank)
          .toList();
    } finally {
      progress.lock.unlock();
    }
  }

  /** Sends the messages between some ranks through shared memory from now on; the lock is held. */
  void share(int[] ranks, RingMemory memory) {
    int own = 0;
    while (ranks[own] != rank) {
      own++;
    }
    Pair[] sharing = new Pair[ranks.length - 1];
    for (int i = 0; i < ranks.length; i++) {
      if (i != own) {
        Pair pair = get(ranks[i]);
        pair.connection.share(
            new RingWriter(memory.ring(own, i)),
            new RingReader(memory.ring(i, own)),
            new Sleep(memory.sleep(i)));
        sharing[i < own ? i : i - 1] = pair;
      }
    }
    transport.progress.share(
        sharing, sharing.length == others.length, new Sleep(memory.sleep(own)));
  }

  /** Fails if a peer is known to have called another collective than this rank. */
  void throwIfDisagreed() {
    for (Pair pair : others) {
      IllegalStateException refusal = pair.disagreement();
      if (refusal != null) {
        throw refusal;
      }
    }
  }

  /** Returns the pair whose peer was the first to offer a message on a slot, if one did. */
  @Nullable Pair firstToOffer(long slot) {
    Pair first = null;
    long oldest = Long.MAX_VALUE;
    for (Pair pair : others) {
      long since = pair.offeredSince(slot);
      if (since >= 0 && since < oldest) {
        first = pair;
        oldest = since;
      }
    }
    return first;
  }

  /** Tells whether nothing more can be expected of any peer. */
  boolean haveAllFailed() {
    for (Pair pair : others) {
      if (pair.failure() == null) {
        return false;
      }
    }
    return true;
  }

  /** Ends all that is under way and leaves the connections open. */
  void halt(Throwable cause) {
    for (Pair pair : others) {
      pair.halt(cause);
    }
  }

  /** Says farewell to ranks of Tutti, and ends all connections. */
  void leave(long reason) {
    closeListener();
    for (Pair pair : others) {
      if (tutti[pair.rank]) {
        pair.connection.sendFarewell(reason);
      }
      pair.connection.close();
    }
  }

  private void closeListener() {
    if (listener != null) {
      listener.close();
      listener = null;
    }
  }
}
