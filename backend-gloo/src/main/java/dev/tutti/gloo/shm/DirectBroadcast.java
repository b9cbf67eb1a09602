package dev.tutti.gloo.shm;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * Copies the root's tensor to all ranks directly from its location, if all ranks can see it there.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>rounds</th><th>bytes written by the root</th><th>bytes read by each other rank</th></tr>
 * <tr><td>2</td><td>0</td><td>S</td></tr>
 * </table>
 *
 * <p>If the tensor turns out not to be visible, this costs one round, and nothing has been changed.
 */
final class DirectBroadcast {
  private final ShmChannel channel;
  private final HostReads reads;

  DirectBroadcast(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
  }

  /**
   * Copies, if all ranks can see the root's tensor.
   *
   * @param root the rank that has them
   * @return whether the operation was done; the same on all ranks
   */
  boolean run(Operation op, MemorySegment tensor, long bytes, int root) throws Exception {
    if (bytes < HostReads.LEAST_MAPPED || !reads.areMapped(op)) {
      return false;
    }
    MemorySegment[] slots = channel.beginSlots();
    boolean shows = channel.rank == root && SharedHeap.has(tensor);
    reads.lend();
    try {
      HostReads.requireAlive(tensor);
      slots[channel.rank].set(ValueLayout.JAVA_LONG, 0, shows ? tensor.address() : 0);
      channel.publishSlot();
      channel.awaitSlots(op);
      long address = slots[root].get(ValueLayout.JAVA_LONG, 0);
      if (address == 0) {
        return false;
      }
      if (channel.rank != root) {
        reads.copy(op, root, address, tensor, 0, bytes);
      }
      channel.agree(op);
      return true;
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    } finally {
      reads.endLoan();
      // The others may read it until the operation ends.
      Reference.reachabilityFence(tensor);
    }
  }
}
