package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Reduces tensors that all ranks can see, in chunks: every rank reduces one part of a chunk from
 * the tensors of all, in the order of ranks, into its own, and copies the other parts of the chunk
 * before from the tensors of those who reduced them. The bits are those of {@link StagedAllReduce}.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C + 2</td><td>S</td><td>(2 - 1/N) S</td></tr>
 * </table>
 *
 * <p>If a rank's tensor turns out to be elsewhere, this costs one round, and nothing was changed.
 */
final class DirectAllReduce {
  /*
   * The first round is one of slots: each shows where its tensor is, which also says that its elements
   * are there. A rank writes nothing but its own tensor: its own part of a chunk, which others read
   * only after it said "reduced", and the parts of others, which these read for the last time before
   * they said so. In the last round all say that they have read what they need, see HostReads.
   */
  private static final long CHUNK = 2 << 20;

  private final ShmChannel channel;
  private final HostReads reads;
  private final MemorySegment[] tensors;

  DirectAllReduce(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
    tensors = new MemorySegment[channel.size];
  }

  /**
   * Reduces in place, if all ranks can see the tensors of all.
   *
   * @param op carries the deadline
   * @param tensor the elements, scaled already where the operator asks for it
   * @param bytes their bytes
   * @param dtype their type
   * @param kind how to reduce; an average is divided here
   * @return whether it was done; the same on all ranks
   * @throws Exception if a wait ended without success
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
    if (kind == ReduceOp.Kind.AVG) {
      HostReducer.divide(dtype, own, begin, count, channel.size);
    }
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
