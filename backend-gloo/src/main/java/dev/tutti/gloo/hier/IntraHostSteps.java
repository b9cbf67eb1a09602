package dev.tutti.gloo.hier;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.shm.OneShotAllReduce;
import dev.tutti.gloo.shm.ShmChannel;
import dev.tutti.gloo.shm.ShmLayout;
import dev.tutti.gloo.shm.StagedAllReduce;
import dev.tutti.gloo.shm.StagedBroadcast;
import dev.tutti.gloo.shm.StagedReduceScatter;
import dev.tutti.gloo.shm.StagedSpread;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.stream.IntStream;

/**
 * The steps of a two-level operation that the ranks of one host perform in the memory they share;
 * they do nothing if the rank is alone. Ranks are identified by their places on the host.
 */
final class IntraHostSteps {
  private final ShmChannel channel;
  private final OneShotAllReduce oneShot;
  private final StagedAllReduce reduce;
  private final StagedReduceScatter reduceScatter;
  private final StagedBroadcast broadcast;
  private final StagedSpread spread;

  /** The parts of an operation, one for each place. */
  private final TensorParts parts;

  /** The numbers of the parts at each place: one. */
  private final int[][] own;

  IntraHostSteps(ShmChannel channel) {
    this.channel = channel;
    oneShot = new OneShotAllReduce(channel);
    reduce = new StagedAllReduce(channel);
    reduceScatter = new StagedReduceScatter(channel);
    broadcast = new StagedBroadcast(channel);
    spread = new StagedSpread(channel);
    parts = new TensorParts(channel.size);
    own =
        IntStream.range(0, channel.size).mapToObj(place -> new int[] {place}).toArray(int[][]::new);
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
      Operation op, MemorySegment memory, long[] sizes, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    if (channel.size > 1) {
      parts.of(memory, sizes);
      try {
        MemorySegment output = memory.asSlice(parts.offset(channel.rank));
        reduceScatter.run(op, output, parts, dtype, kind, 1);
      } finally {
        parts.forget();
      }
    }
  }

  /** Copies each part from the rank at its place to all other ranks. */
  void gatherParts(Operation op, MemorySegment memory, long[] sizes) throws Exception {
    if (channel.size > 1) {
      try {
        spread.run(op, parts.of(memory, sizes), own);
      } finally {
        parts.forget();
      }
    }
  }

  /** Copies one rank's bytes to all other ranks. */
  void broadcast(Operation op, MemorySegment memory, long bytes, int root) throws Exception {
    if (channel.size > 1) {
      broadcast.run(op, memory, bytes, root);
    }
  }

  /** Copies parts, of which each rank holds some, to all other ranks. */
  void spread(Operation op, TensorParts all, int[][] held) throws Exception {
    if (channel.size > 1) {
      spread.run(op, all, held);
    }
  }

  void close() {
    channel.close();
  }
}
