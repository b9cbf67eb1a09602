package dev.tutti.gloo.shm;

import dev.tutti.Tensor;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * Exchanges parts of any size between all ranks; each slot holds the sizes of the parts, of which
 * the longest determines the number of steps, and each stage holds a piece for every rank. Large
 * parts are copied directly from their locations, if all ranks can see them or the system lets
 * ranks read each other.
 *
 * <p>No rank reads all sizes, whose number is the square of that of the ranks. It adds one word of
 * each slot, the digests of what that rank sends less the digests of what it expects. The sum is 0
 * if every two ranks agree.
 *
 * <table>
 * <caption>Cost for N ranks, S bytes to each and stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>N S / C</td><td>2 N S</td><td>2 N S</td></tr>
 * </table>
 */
final class StagedAllToAll {
  /**
   * What a rank reports about itself: that it has staged the first pieces of its parts, and that
   * all ranks can see its parts.
   */
  private static final int STAGED = 1;

  private static final int SEEN = 2;

  // Words of a slot; from PARTS on, three for each rank: the bytes sent to it and expected from it,
  // and where those sent to it are.
  private static final int FLAGS = 0;
  private static final int LONGEST = 1;
  private static final int SUM = 2;
  private static final int PARTS = 3;

  private final ShmChannel channel;
  private final HostReads reads;
  private final TensorParts inputs;
  private final TensorParts outputs;

  /**
   * For each rank, how far apart its pieces in the current step are, and where its part for us is.
   */
  private final long[] pieces;

  private final long[] addresses;

  StagedAllToAll(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
    inputs = new TensorParts(channel.size);
    outputs = new TensorParts(channel.size);
    pieces = new long[channel.size];
    addresses = new long[channel.size];
  }

  /**
   * Exchanges tensors.
   *
   * @param received the tensors to receive into, one from each rank
   * @param sent the tensors to send, one to each rank, each as long as that rank's output for this
   *     rank
   */
  void run(Operation op, List<Tensor> received, List<Tensor> sent) throws Exception {
    outputs.of(received);
    inputs.of(sent);
    run(op);
  }

  /**
   * Exchanges rows of two tensors.
   *
   * @param output the tensor to receive into
   * @param input the tensor to send
   * @param outputRows the number of rows to receive from each rank
   * @param inputRows the number of rows to send to each rank
   */
  void run(Operation op, Tensor output, Tensor input, long[] outputRows, long[] inputRows)
      throws Exception {
    outputs.of(output, outputRows);
    inputs.of(input, inputRows);
    run(op);
  }

  private void run(Operation op) throws Exception {
    try {
      boolean seen = areSeen();
      long longest = inputs.longest();
      if (longest < (seen ? HostReads.LEAST_MAPPED : HostReads.LEAST_BYTES)) {
        exchange(op, STAGED | (seen ? SEEN : 0), longest);
        return;
      }
      reads.lend();
      try {
        for (int peer = 0; peer < channel.size; peer++) {
          HostReads.requireAlive(inputs.memory(peer));
        }
        exchange(op, seen ? SEEN : 0, longest);
      } finally {
        reads.endLoan();
      }
    } finally {
      inputs.forget();
      outputs.forget();
    }
  }

  private boolean areSeen() {
    for (int peer = 0; peer < channel.size; peer++) {
      if (inputs.bytes(peer) != 0 && !SharedHeap.has(inputs.memory(peer))) {
        return false;
      }
    }
    return true;
  }

  /**
   * Exchanges the parts.
   *
   * @param flags what applies to this rank
   * @param ownLongest the size in bytes of the longest part that this rank sends
   */
  private void exchange(Operation op, int flags, long ownLongest) throws Exception {
    boolean large = (flags & STAGED) == 0;
    long piece = Parts.piece(channel.layout.stageBytes(), channel.size);
    MemorySegment[] slots = channel.beginSlots();
    show(slots[channel.rank], flags, ownLongest);
    // The first step stages no large parts, because they may be read from their locations. The
    // pieces of short ones are close together, so that they share pages.
    long step = stage(op, 0, large ? 0 : Math.min(piece, Parts.bytes(ownLongest, 1)));
    channel.publishSlot();
    if (!large) {
      copyOwn(0, piece);
    }
    channel.awaitSlots(op);
    long longest = 0;
    long sum = 0;
    long common = STAGED | SEEN;
    for (int peer = 0; peer < channel.size; peer++) {
      MemorySegment slot = slots[peer];
      long theirs = slot.getAtIndex(ValueLayout.JAVA_LONG, LONGEST);
      pieces[peer] = Math.min(piece, Parts.bytes(theirs, 1));
      longest = Math.max(longest, theirs);
      sum += slot.getAtIndex(ValueLayout.JAVA_LONG, SUM);
      common &= slot.getAtIndex(ValueLayout.JAVA_LONG, FLAGS);
    }
    if (sum != 0) {
      throw mismatch(slots);
    }
    long offset = 0;
    if ((common & STAGED) != 0) {
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        take(peer, step, 0, pieces[peer]);
      }
      channel.finish(step);
      offset = piece;
    } else {
      for (int peer = 0; peer < channel.size; peer++) {
        addresses[peer] =
            slots[peer].getAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * channel.rank + 2);
      }
      channel.finish(step);
      if (((common & SEEN) != 0 && reads.areMapped(op))
          || (longest >= HostReads.LEAST_BYTES && reads.areOpen(op))) {
        read(op);
        return;
      }
    }
    for (; offset < longest; offset += piece) {
      // The number of steps is determined by the other ranks.
      channel.throwIfOver(op);
      step = stage(op, offset, piece);
      copyOwn(offset, piece);
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        channel.awaitPublished(op, peer, step);
        take(peer, step, offset, piece);
      }
      channel.finish(step);
    }
  }

  /** Shows the sizes of all parts, what follows from them, and where the inputs are. */
  private void show(MemorySegment slot, int flags, long longest) {
    long sum = 0;
    for (int peer = 0; peer < channel.size; peer++) {
      long sent = inputs.bytes(peer);
      long expected = outputs.bytes(peer);
      sum += digest(channel.rank, peer, sent) - digest(peer, channel.rank, expected);
      slot.setAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * peer, sent);
      slot.setAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * peer + 1, expected);
      slot.setAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * peer + 2, inputs.address(peer));
    }
    slot.setAtIndex(ValueLayout.JAVA_LONG, FLAGS, flags);
    slot.setAtIndex(ValueLayout.JAVA_LONG, LONGEST, longest);
    slot.setAtIndex(ValueLayout.JAVA_LONG, SUM, sum);
  }

  /** Digests the size of a part; that of another rank or size differs, but for chance. */
  private static long digest(int from, int to, long bytes) {
    long mixed = ((long) from << 32 | to) * 0x9E3779B97F4A7C15L + bytes;
    mixed = (mixed ^ mixed >>> 32) * 0xD6E8FEB86659FD93L;
    mixed = (mixed ^ mixed >>> 32) * 0xD6E8FEB86659FD93L;
    return mixed ^ mixed >>> 32;
  }

  /**
   * Stages a piece of each part; returns the number of the step.
   *
   * @param piece the size of a piece in bytes, and how far apart they are
   */
  private long stage(Operation op, long offset, long piece) throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    MemorySegment own = channel.stages(step)[channel.rank];
    for (int peer = 0; peer < channel.size; peer++) {
      if (peer != channel.rank) {
        copy(peer, offset, own, peer * piece, piece);
      }
    }
    channel.publish(step);
    return step;
  }

  /** Takes a rank's piece of a step that the rank has published. */
  private void take(int peer, long step, long offset, long piece) {
    long length = Math.min(piece, outputs.bytes(peer) - offset);
    if (length > 0) {
      MemorySegment theirs = channel.stages(step)[peer];
      long place = outputs.offset(peer) + offset;
      MemorySegment.copy(theirs, channel.rank * piece, outputs.memory(peer), place, length);
    }
  }

  private void copyOwn(long offset, long piece) {
    int rank = channel.rank;
    if (outputs.bytes(rank) == inputs.bytes(rank)) {
      copy(rank, offset, outputs.memory(rank), outputs.offset(rank) + offset, piece);
    }
  }

  /** Copies at most a piece of the part for a rank. */
  private void copy(int peer, long offset, MemorySegment into, long place, long piece) {
    long length = Math.min(piece, inputs.bytes(peer) - offset);
    if (length > 0) {
      MemorySegment.copy(inputs.memory(peer), inputs.offset(peer) + offset, into, place, length);
    }
  }

  /** Copies the parts from where the other ranks have them. */
  private void read(Operation op) throws Exception {
    try {
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        long place = outputs.offset(peer);
        reads.copy(op, peer, addresses[peer], outputs.memory(peer), place, outputs.bytes(peer));
      }
      copyOwn(0, Long.MAX_VALUE);
      channel.agree(op);
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    }
  }

  /** Returns the exception that names the first two ranks whose sizes differ. */
  private PeerMismatchException mismatch(MemorySegment[] slots) {
    for (int from = 0; from < channel.size; from++) {
      for (int to = 0; to < channel.size; to++) {
        long sent = slots[from].getAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * to);
        long expected = slots[to].getAtIndex(ValueLayout.JAVA_LONG, PARTS + 3L * from + 1);
        if (sent != expected) {
          return new PeerMismatchException(
              "ranks disagree: rank "
                  + from
                  + " sends "
                  + sent
                  + " bytes to rank "
                  + to
                  + ", which expects "
                  + expected);
        }
      }
    }
    return new PeerMismatchException(
        "ranks disagree: the sizes of the parts are equal, but their digests are not");
  }
}
