package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces a tensor in chunks: every rank stages the parts of a chunk that the others reduce. It
 * reduces its own part from all stages and its tensor, in rank order, and shows the result in its
 * stage. It then takes the other parts from the ranks that reduced them. A chunk is staged while
 * the previous one is reduced.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C + 1</td><td>2 S</td><td>(3 - 1/N) S</td></tr>
 * </table>
 */
public final class StagedAllReduce {
  private final ShmChannel channel;
  private final MemorySegment[] inputs;
  private final long[] offsets;

  public StagedAllReduce(ShmChannel channel) {
    this.channel = channel;
    inputs = new MemorySegment[channel.size];
    offsets = new long[channel.size];
  }

  /**
   * Reduces in place.
   *
   * @param root the only rank that gets the result, or -1 for all
   */
  public void run(
      Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind, int root)
      throws Exception {
    try {
      reduce(op, tensor, bytes, dtype, kind, root);
    } finally {
      inputs[channel.rank] = MemorySegment.NULL;
    }
  }

  private void reduce(
      Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind, int root)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    boolean all = root < 0;
    long chunk = Math.min(channel.layout.stageBytes(), Math.max(bytes, 1));
    long first = channel.step() + 1;
    long steps = Math.ceilDiv(bytes, chunk);
    if (bytes > 0) {
      stage(op, tensor, 0, bytes, chunk);
    }
    for (long i = 0; i < steps; i++) {
      if (i + 1 < steps) {
        stage(op, tensor, i + 1, bytes, chunk);
      }
      long step = first + i;
      long at = i * chunk;
      long length = Math.min(chunk, bytes - at);
      long part = Parts.bytes(length, size);
      MemorySegment[] stages = channel.stages(step);
      channel.awaitAllPublished(op, step);
      long begin = Math.min(length, rank * part);
      long end = Math.min(length, begin + part);
      aim(stages, begin, tensor, at + begin);
      long count = (end - begin) / dtype.byteSize();
      if (all) {
        HostReducer.combineAllTwice(
            kind, dtype, tensor, at + begin, stages[rank], begin, inputs, offsets, count);
      } else {
        MemorySegment out = root == rank ? tensor : stages[rank];
        long place = root == rank ? at + begin : begin;
        HostReducer.combineAll(kind, dtype, out, place, inputs, offsets, count);
      }
      channel.reduced(step);
      if (all || root == rank) {
        for (int n = 1; n < size; n++) {
          int peer = (rank + n) % size;
          long from = Math.min(length, peer * part);
          long to = Math.min(length, from + part);
          if (to > from) {
            channel.awaitReduced(op, peer, step);
            MemorySegment.copy(stages[peer], from, tensor, at + from, to - from);
          }
        }
      }
      channel.finish(step);
    }
  }

  /**
   * Sets the inputs of the reduction: the others' stages from an offset on, and this rank's tensor.
   */
  private void aim(MemorySegment[] stages, long inStage, MemorySegment tensor, long inTensor) {
    for (int peer = 0; peer < channel.size; peer++) {
      inputs[peer] = peer == channel.rank ? tensor : stages[peer];
      offsets[peer] = peer == channel.rank ? inTensor : inStage;
    }
  }

  private void stage(Operation op, MemorySegment tensor, long index, long bytes, long chunk)
      throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    long at = index * chunk;
    long length = Math.min(chunk, bytes - at);
    long part = Parts.bytes(length, channel.size);
    long begin = Math.min(length, channel.rank * part);
    long end = Math.min(length, begin + part);
    MemorySegment own = channel.stages(step)[channel.rank];
    MemorySegment.copy(tensor, at, own, 0, begin);
    MemorySegment.copy(tensor, at + end, own, end, length - end);
    channel.publish(step);
  }
}
