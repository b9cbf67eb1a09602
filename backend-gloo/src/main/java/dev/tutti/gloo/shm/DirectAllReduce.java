package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Reduces, in chunks, tensors that all ranks can see. Every rank reduces one part of a chunk from
 * the tensors of all ranks, in rank order, into its own tensor. It copies the other parts of the
 * previous chunk from the tensors of the ranks that reduced them. The results are bitwise identical
 * to those of {@link StagedAllReduce}.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C + 2</td><td>S</td><td>(2 - 1/N) S</td></tr>
 * </table>
 *
 * <p>If a rank's tensor turns out not to be visible, this costs one round, and nothing has been
 * changed.
 */
final class DirectAllReduce {
  /*
   * The first round uses slots: each rank shows where its tensor is, which also indicates that its
   * elements are ready. A rank writes only to its own tensor: it writes its own part of a chunk,
   * which others read only after it has signaled "reduced", and the parts of others, which those
   * ranks read for the last time before they signaled it. In the last round all ranks confirm that
   * they have read what they need; see HostReads.
   */
  static final long CHUNK = 2 << 20;

  private final ShmChannel channel;
  private final HostReads reads;
  private final MemorySegment[] tensors;

  DirectAllReduce(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
    tensors = new MemorySegment[channel.size];
  }

  /**
   * Reduces in place, if all ranks can see all tensors.
   *
   * @param tensor the elements, already scaled if the operator requires it
   * @return whether the operation was done; the same on all ranks
   */
  boolean run(Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    if (bytes < HostReads.LEAST_MAPPED || !reads.areMapped(op)) {
      return false;
    }
    MemorySegment[] slots = channel.beginSlots();
    long address = SharedHeap.has(tensor) ? tensor.address() : 0;
    reads.lend();
    try {
      HostReads.requireAlive(tensor);
      slots[channel.rank].set(ValueLayout.JAVA_LONG, 0, address);
      channel.publishSlot();
      channel.awaitSlots(op);
      if (!ShmChannel.areAllSet(slots, 0)) {
        return false;
      }
      for (int peer = 0; peer < channel.size; peer++) {
        tensors[peer] =
            peer == channel.rank
                ? tensor
                : reads.view(peer, slots[peer].get(ValueLayout.JAVA_LONG, 0), bytes);
      }
      reduce(op, bytes, dtype, kind);
      return true;
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    } finally {
      reads.endLoan();
      tensors[channel.rank] = MemorySegment.NULL;
    }
  }

  private void reduce(Operation op, long bytes, DType dtype, ReduceOp.Kind kind) throws Exception {
    long chunks = Math.ceilDiv(bytes, CHUNK);
    long first = channel.advance(chunks);
    for (long i = 0; i < chunks; i++) {
      channel.throwIfOver(op);
      reducePart(i * CHUNK, Math.min(CHUNK, bytes - i * CHUNK), dtype, kind);
      channel.reduced(first + i);
      if (i > 0) {
        collect(op, (i - 1) * CHUNK, CHUNK, first + i - 1);
      }
    }
    long last = (chunks - 1) * CHUNK;
    collect(op, last, bytes - last, first + chunks - 1);
    reads.checkAll();
    channel.finish(first + chunks - 1);
    channel.agree(op);
  }

  private void reducePart(long at, long length, DType dtype, ReduceOp.Kind kind) {
    MemorySegment own = tensors[channel.rank];
    long part = Parts.bytes(length, channel.size);
    long begin = at + Math.min(length, channel.rank * part);
    long count = (Math.min(at + length, begin + part) - begin) / dtype.byteSize();
    HostReducer.combineAll(kind, dtype, own, begin, tensors, begin, count);
  }

  private void collect(Operation op, long at, long length, long step) throws Exception {
    int size = channel.size;
    long part = Parts.bytes(length, size);
    for (int n = 1; n < size; n++) {
      int peer = (channel.rank + n) % size;
      long from = Math.min(length, peer * part);
      long to = Math.min(length, from + part);
      if (to > from) {
        channel.awaitReduced(op, peer, step);
        MemorySegment.copy(tensors[peer], at + from, tensors[channel.rank], at + from, to - from);
      }
    }
  }
}
