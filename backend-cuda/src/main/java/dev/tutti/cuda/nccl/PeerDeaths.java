package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.TuttiException;
import dev.tutti.cuda.share.NoteReceiver;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.spi.BackendContext.FailureListener;
import dev.tutti.spi.PeerLostException;
import java.io.IOException;
import java.util.BitSet;

/**
 * A watch for peers that die, which NCCL does not notice inside a host: the end of a peer's links
 * without a farewell fails the group. Thread-safe.
 */
final class PeerDeaths implements NoteReceiver, AutoCloseable {
  private static final long FAREWELL = 1;

  private final RankLinks links;
  private final int rank;
  private final int size;
  private final FailureListener onFailure;
  private final BitSet left = new BitSet();
  private boolean failed;
  private boolean closing;

  /**
   * Starts to watch.
   *
   * @param links the links to the peers; closed together with this object
   * @param rank this rank's number
   * @param size the number of ranks
   * @param onFailure told of the first peer that dies, by the thread of the links
   */
  PeerDeaths(RankLinks links, int rank, int size, FailureListener onFailure) {
    this.links = links;
    this.rank = rank;
    this.size = size;
    this.onFailure = onFailure;
    links.listen(this);
  }

  @Override
  public synchronized void take(int sender, long kind, long a, long b, long c) {
    if (kind == FAREWELL) {
      left.set(sender);
    }
  }

  @Override
  public void ended(int sender) {
    String text = "rank " + sender + " is gone, or its group failed: its links were closed";
    fail(new IOException("rank " + rank + ": " + text), sender);
  }

  @Override
  public void fail(IOException cause, int peer) {
    synchronized (this) {
      if (closing || failed || (peer >= 0 && left.get(peer))) {
        return;
      }
      failed = true;
    }
    String text = String.valueOf(cause.getMessage());
    TuttiException failure =
        peer < 0 ? new BackendException(text, cause) : new PeerLostException(peer, text, cause);
    onFailure.failed(failure, peer);
  }

  /** Stops watching, because the group failed; the peers get no farewell. */
  synchronized void abort() {
    failed = true;
  }

  /** Takes leave of the peers, unless the group failed, and closes the links. */
  @Override
  public void close() {
    boolean isGood;
    synchronized (this) {
      closing = true;
      isGood = !failed;
    }
    for (int peer = 0; isGood && peer < size; peer++) {
      if (peer != rank) {
        try {
          links.send(peer, FAREWELL, 0, 0, 0);
        } catch (PeerLostException e) {
          // The peer closed first.
        }
      }
    }
    links.close();
  }
}
