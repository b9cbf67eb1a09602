package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces a small tensor in one round: every rank shows its elements to all others, and each rank
 * reduces them all by itself, in rank order, so that all ranks get bitwise identical results.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>1</td><td>2 S</td><td>N S</td></tr>
 * </table>
 */
public final class OneShotAllReduce {
  private final ShmChannel channel;

  public OneShotAllReduce(ShmChannel channel) {
    this.channel = channel;
  }

  public void run(Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    MemorySegment[] slots = channel.beginSlots();
    MemorySegment.copy(tensor, 0, slots[channel.rank], 0, bytes);
    channel.publishSlot();
    channel.awaitSlots(op);
    HostReducer.combineAll(kind, dtype, tensor, 0, slots, 0, bytes / dtype.byteSize());
  }
}
