package dev.tutti.gloo.transport.ring;

import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;

/**
 * Moves the bytes of one pair through two rings in memory that both ranks see, one for each
 * direction.
 */
public final class RingChannel implements ByteChannel {
  /*
   * A ring has two positions that only grow: the total number of bytes written (tail) and read
   * (head). Each is written by one rank, on a line of its own. Each rank also keeps a private copy
   * of its own position, so that it reads only the other's from the ring. A position that goes
   * backward, or is impossible, ends the pair; no access leaves the ring, whatever the memory
   * contains. Bytes are copied in before the position that publishes them is stored, and copied out
   * before the position that frees their space is stored. For the bytes alone, acquire and release
   * would therefore suffice.
   *
   * They do not suffice for sleep. A waiting thread checks its rings for a while and then blocks in
   * the selector, where only a byte on a socket wakes it. So as not to miss anything, it stores a
   * number into its sleep word and then checks all its rings once more. A thread that moves a
   * position stores it and then checks the peer's sleep word: if it contains a number not seen
   * before, the thread sends a doorbell through the socket. Each of the two thus stores first and
   * then loads the other's word. If a load took effect before the store, as hardware likes to
   * reorder them, both could find nothing: the bytes would be there and the rank asleep. These
   * accesses are therefore volatile, and all threads see them in a single order: whichever store
   * comes second in that order, the load that follows it sees the other store.
   *
   * A writer is notified of space only while it has none. It says so in a word of the ring,
   * before its sleep word; the reader checks that word after moving the head, and only then the
   * sleep word. The same ordering makes this safe.
   *
   * A rank uses a new number for each sleep, and each peer remembers the last one for which it
   * rang. No word therefore has two writers, a doorbell is sent only once, and a rank that dies or
   * is stopped before it sends one does not affect the others.
   */
  private final RingWriter out;
  private final RingReader in;
  private final Sleep peer;
  private final Runnable doorbell;

  /**
   * Creates the channel of one rank.
   *
   * @param out the ring to the peer
   * @param in the ring from the peer
   * @param peer returns whether the peer is asleep
   * @param doorbell wakes the peer
   */
  public RingChannel(RingWriter out, RingReader in, Sleep peer, Runnable doorbell) {
    this.out = out;
    this.in = in;
    this.peer = peer;
    this.doorbell = doorbell;
  }

  @Override
  public int write(ByteBuffer from) throws RingCorruptedException {
    int total = 0;
    int count = out.write(from);
    while (count > 0) {
      total += count;
      if (peer.isToBeEnded()) {
        doorbell.run();
      }
      count = from.hasRemaining() ? out.write(from) : 0;
    }
    return total;
  }

  @Override
  public int read(ByteBuffer to) throws RingCorruptedException {
    int total = 0;
    int count = in.read(to);
    while (count > 0) {
      total += count;
      if (in.writerWaits() && peer.isToBeEnded()) {
        doorbell.run();
      }
      count = to.hasRemaining() ? in.read(to) : 0;
    }
    return total;
  }

  /** Returns whether there are bytes to read. */
  public boolean hasBytes() {
    return in.hasBytes();
  }

  /** Returns whether there is space to write. */
  public boolean hasSpace() {
    return out.hasSpace();
  }

  /** Notifies the peer whether this rank waits for space. */
  public void waits(boolean wanted) {
    out.waits(wanted);
  }

  @Override
  public boolean isOpen() {
    return true;
  }

  @Override
  public void close() {
    // The memory belongs to its owner.
  }
}
