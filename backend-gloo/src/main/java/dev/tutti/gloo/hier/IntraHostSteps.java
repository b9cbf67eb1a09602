package dev.tutti.gloo.hier;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.shm.OneShotAllReduce;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.shm.ShmLayout;
import dev.tutti.gloo.shm.StagedAllReduce;
import dev.tutti.gloo.shm.StagedBroadcast;
import dev.tutti.gloo.shm.StagedPartReduce;
import dev.tutti.gloo.shm.StagedSpread;
import dev.tutti.gloo.shm.UnevenStagedAllGather;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * The steps of a two-level operation that the ranks of one host perform in the memory they share;
 * they do nothing if the rank is alone. Ranks are identified by their places on the host.
 */
final class IntraHostSteps {
  private final ShmChannel channel;
  private final OneShotAllReduce oneShot;
  private final StagedAllReduce reduce;
  private final StagedPartReduce partReduce;
  private final StagedBroadcast broadcast;
  private final UnevenStagedAllGather allGather;
  private final StagedSpread spread;

  IntraHostSteps(ShmChannel channel) {
    this.channel = channel;
    oneShot = new OneShotAllReduce(channel);
    reduce = new StagedAllReduce(channel);
    partReduce = new StagedPartReduce(channel);
    broadcast = new StagedBroadcast(channel);
    allGather = new UnevenStagedAllGather(channel);
    spread = new StagedSpread(channel);
  }

  /** Returns the place of this rank. */
  int place() {
    return channel.rank;
  }

  /** Returns the number of ranks on the host. */
  int size() {
    return channel.size;
  }

  /** Enters the next operation, for which all ranks must have the same signature. */
  void enter(long signature) {
    channel.enter(signature);
  }

  /** Waits until all ranks of the host have called this. */
  void agree(Operation op) throws Exception {
    if (channel.size > 1) {
      channel.agree(op);
    }
  }

  /** Reduces in place to one rank; the content of the other ranks is undefined afterwards. */
  void reduce(
      Operation op, MemorySegment memory, long bytes, DType dtype, ReduceOp.Kind kind, int root)
      throws Exception {
    if (channel.size == 1) {
      return;
    }
    if (bytes <= ShmLayout.SLOT_BYTES) {
      oneShot.run(op, memory, bytes, dtype, kind);
    } else {
      reduce.run(op, memory, bytes, dtype, kind, root);
    }
  }

  /** Reduces in place, each part onto the rank at its place. */
  void reduceParts(
      Operation op, MemorySegment memory, long[] parts, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    if (channel.size > 1) {
      partReduce.run(op, memory, parts, dtype, kind);
    }
  }

  /** Copies each part from the rank at its place to all other ranks. */
  void gatherParts(Operation op, MemorySegment memory, long[] parts) throws Exception {
    if (channel.size > 1) {
      allGather.run(op, memory, parts);
    }
  }

  /** Copies one rank's bytes to all other ranks. */
  void broadcast(Operation op, MemorySegment memory, long bytes, int root) throws Exception {
    if (channel.size > 1) {
      broadcast.run(op, memory, bytes, root);
    }
  }

  /** Copies parts, of which each rank holds some, to all other ranks. */
  void spread(Operation op, TensorParts parts, int[][] held) throws Exception {
    if (channel.size > 1) {
      spread.run(op, parts, held);
    }
  }

  void close() {
    channel.close();
  }
}
