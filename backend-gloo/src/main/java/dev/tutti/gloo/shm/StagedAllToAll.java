package dev.tutti.gloo.shm;

import dev.tutti.Tensor;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;
import java.util.List;

/**
 * Exchanges parts of any size between all ranks; each slot holds the sizes of the parts, which
 * determine the number of steps, and each stage holds a piece for every rank. Large parts are
 * copied directly from their locations, if all ranks can see them or the system lets ranks read
 * each other.
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

  private final ShmChannel channel;
  private final HostReads reads;
  private final long[] addresses;

  StagedAllToAll(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
    addresses = new long[channel.size];
  }

  /**
   * Exchanges the parts.
   *
   * @param op carries the deadline
   * @param outputs the tensors to receive into, one from each rank
   * @param inputs the tensors to send, one to each rank, each as long as that rank's output for
   *     this rank
   * @throws Exception if a wait fails
   */
  void run(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    boolean seen = areSeen(inputs);
    if (longest(inputs) < (seen ? HostReads.LEAST_MAPPED : HostReads.LEAST_BYTES)) {
      exchange(op, outputs, inputs, STAGED | (seen ? SEEN : 0));
      return;
    }
    reads.lend();
    try {
      inputs.forEach(input -> HostReads.requireAlive(input.segment()));
      exchange(op, outputs, inputs, seen ? SEEN : 0);
    } finally {
      reads.endLoan();
      // The others may read it until the operation ends.
      Reference.reachabilityFence(inputs);
    }
  }

  /**
   * Exchanges the parts.
   *
   * @param flags what applies to this rank
   */
  private void exchange(Operation op, List<Tensor> outputs, List<Tensor> inputs, int flags)
      throws Exception {
    boolean large = (flags & STAGED) == 0;
    long piece = Parts.piece(channel.layout.stageBytes(), channel.size);
    MemorySegment[] slots = channel.beginSlots();
    show(slots[channel.rank], outputs, inputs, flags);
    channel.publishSlot();
    // The first step stages no large parts, because they may be read from their locations.
    long step = stage(op, inputs, 0, large ? 0 : piece);
    if (!large) {
      copyOwn(outputs, inputs, 0, piece);
    }
    channel.awaitSlots(op);
    long longest = check(slots);
    boolean staged = areAll(slots, STAGED);
    boolean seen = areAll(slots, SEEN);
    long offset = 0;
    if (staged) {
      take(op, step, outputs, 0, piece);
      offset = piece;
    }
    channel.finish(step);
    if (!staged
        && ((seen && reads.areMapped(op))
            || (longest >= HostReads.LEAST_BYTES && reads.areOpen(op)))) {
      read(op, outputs, inputs);
      return;
    }
    for (; offset < longest; offset += piece) {
      // The number of steps is determined by the other ranks.
      channel.throwIfOver(op);
      step = stage(op, inputs, offset, piece);
      copyOwn(outputs, inputs, offset, piece);
      take(op, step, outputs, offset, piece);
      channel.finish(step);
    }
  }

  private static boolean areSeen(List<Tensor> inputs) {
    boolean seen = true;
    for (int peer = 0; peer < inputs.size(); peer++) {
      Tensor input = inputs.get(peer);
      seen &= input.byteSize() == 0 || SharedHeap.has(input.segment());
    }
    return seen;
  }

  private static long longest(List<Tensor> inputs) {
    long longest = 0;
    for (int peer = 0; peer < inputs.size(); peer++) {
      longest = Math.max(longest, inputs.get(peer).byteSize());
    }
    return longest;
  }

  /** Shows the sizes of all parts and where the inputs are. */
  private void show(MemorySegment slot, List<Tensor> outputs, List<Tensor> inputs, int flags) {
    int size = channel.size;
    for (int peer = 0; peer < size; peer++) {
      Tensor input = inputs.get(peer);
      slot.setAtIndex(ValueLayout.JAVA_LONG, peer, input.byteSize());
      slot.setAtIndex(ValueLayout.JAVA_LONG, size + peer, outputs.get(peer).byteSize());
      slot.setAtIndex(ValueLayout.JAVA_LONG, 2L * size + peer, input.segment().address());
    }
    slot.setAtIndex(ValueLayout.JAVA_LONG, 3L * size, flags);
  }

  private boolean areAll(MemorySegment[] slots, int what) {
    for (MemorySegment slot : slots) {
      if ((slot.getAtIndex(ValueLayout.JAVA_LONG, 3L * channel.size) & what) == 0) {
        return false;
      }
    }
    return true;
  }

  /** Stages a piece of each part; returns the number of the step. */
  private long stage(Operation op, List<Tensor> inputs, long offset, long piece) throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    MemorySegment own = channel.stages(step)[channel.rank];
    for (int peer = 0; peer < channel.size; peer++) {
      if (peer != channel.rank) {
        copy(inputs.get(peer), offset, own, peer * piece, piece);
      }
    }
    channel.publish(step);
    return step;
  }

  private void take(Operation op, long step, List<Tensor> outputs, long offset, long piece)
      throws Exception {
    for (int i = 1; i < channel.size; i++) {
      int peer = (channel.rank + i) % channel.size;
      MemorySegment output = outputs.get(peer).segment();
      long length = Math.min(piece, outputs.get(peer).byteSize() - offset);
      channel.awaitPublished(op, peer, step);
      if (length > 0) {
        MemorySegment.copy(
            channel.stages(step)[peer], channel.rank * piece, output, offset, length);
      }
    }
  }

  private void copyOwn(List<Tensor> outputs, List<Tensor> inputs, long offset, long piece) {
    Tensor output = outputs.get(channel.rank);
    Tensor input = inputs.get(channel.rank);
    if (output.byteSize() == input.byteSize()) {
      copy(input, offset, output.segment(), offset, piece);
    }
  }

  /** Copies the parts from where the other ranks have them. */
  private void read(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    try {
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        Tensor output = outputs.get(peer);
        reads.copy(op, peer, addresses[peer], output.segment(), output.byteSize());
      }
      copyOwn(outputs, inputs, 0, Long.MAX_VALUE);
      channel.agree(op);
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    }
  }

  private static void copy(
      Tensor input, long offset, MemorySegment stage, long stageOffset, long piece) {
    long length = Math.min(piece, input.byteSize() - offset);
    if (length > 0) {
      MemorySegment.copy(input.segment(), offset, stage, stageOffset, length);
    }
  }

  /**
   * Compares the sizes given by all ranks, so that all ranks detect it if any two disagree; returns
   * the size of the longest part.
   */
  private long check(MemorySegment[] slots) {
    int size = channel.size;
    long longest = 0;
    for (int from = 0; from < size; from++) {
      for (int to = 0; to < size; to++) {
        long sent = slots[from].getAtIndex(ValueLayout.JAVA_LONG, to);
        long expected = slots[to].getAtIndex(ValueLayout.JAVA_LONG, size + from);
        if (sent != expected) {
          throw new PeerMismatchException(
              "ranks disagree: rank "
                  + from
                  + " sends "
                  + sent
                  + " bytes to rank "
                  + to
                  + ", which expects "
                  + expected);
        }
        longest = Math.max(longest, sent);
      }
      addresses[from] = slots[from].getAtIndex(ValueLayout.JAVA_LONG, 2L * size + channel.rank);
    }
    return longest;
  }
}
