package dev.tutti.gloo.transport.ring;

import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;

/**
 * Moves the bytes of one pair through two rings in memory that both ranks see, one for each
 * direction.
 */
public final class RingChannel implements ByteChannel {
  /*
   * A ring has two positions that only grow: how many bytes were ever written (tail) and read
   * (head). Each is written by one rank, on a line of its own, and each rank keeps its own position
   * to itself as well, so that it reads nothing but the other's. A position that goes back, or lies
   * where it cannot be, ends the pair; no access leaves the ring whatever the memory holds. Bytes
   * are copied before the position that shows them is stored, and copied out before the one that
   * gives their place away, so acquire and release would do for the bytes.
   *
   * They do not for sleep. A thread that waits looks at its rings for a while and then blocks in the selector,
   * where only a byte on a socket wakes it. To miss nothing, it stores a number into its word of
   * sleep and then looks at all its rings once more. A thread that moves a position stores it and then looks
   * at the word of the peer: if there is a number that it has not seen, it sends a doorbell through
   * the socket. Each of the two stores first and loads the other's word afterwards. Were a load
   * done before the store, as hardware likes to, both could find nothing: the bytes would lie there
   * and the rank sleep. So these accesses are volatile, of which there is one order that all see:
   * whichever store is second in it, the load that follows it sees the other.
   *
   * A writer wants to hear of space only while it has none. It says so in a word of the ring, before
   * its word of sleep; the reader looks at that after it moved the head, and only then at the sleep.
   * The same order makes that safe.
   *
   * A rank has a new number for each sleep, and each peer remembers the last one that it rang for. So
   * no word has two writers, a doorbell is sent once, and a rank that dies or is stopped before it
   * sends one takes nothing from the others.
   */
  private final RingWriter out;
  private final RingReader in;
  private final Sleep peer;
  private final Runnable doorbell;

  /**
   * Creates the channel of one rank.
   *
   * @param out to the peer
   * @param in from the peer
   * @param peer tells whether it sleeps
   * @param doorbell wakes it
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

  /** Tells whether there is something to read. */
  public boolean hasBytes() {
    return in.hasBytes();
  }

  /** Tells whether there is space to write to. */
  public boolean hasSpace() {
    return out.hasSpace();
  }

  /** Says to the peer whether this rank waits for space. */
  public void waits(boolean wanted) {
    out.waits(wanted);
  }

  @Override
  public boolean isOpen() {
    return true;
  }

  @Override
  public void close() {
    // The memory is its owner's.
  }
}
