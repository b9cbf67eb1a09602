package dev.tutti.kernels;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Writes the structure that specifies a reduction. An instance is created once per stream and
 * rewritten for each call, without allocating. One thread uses it; a launch copies it.
 */
public final class ReduceCall {
  /** The size of the structure in bytes. */
  public static final int BYTES = 64 + 8 * ChannelLayout.MAX_RANKS;

  /** The maximum number of shared memories that can be distinguished. */
  public static final int MAX_SHARED = 15;

  private static final int SHARED_OFFSET = 64;

  private final MemorySegment memory;

  /**
   * Creates a writer.
   *
   * @param memory the memory to write, {@link #BYTES} bytes, aligned to 8
   */
  public ReduceCall(MemorySegment memory) {
    this.memory = memory.asSlice(0, BYTES);
  }

  /** Returns the structure, to be passed by value. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * Sets an all-reduce.
   *
   * @param in the device address of the elements; may equal {@code out}, but must not overlap it
   *     otherwise
   * @param out the device address of the result
   * @param bytes the size of each in bytes
   * @param ranks the number of ranks
   */
  public ReduceCall allReduce(long in, long out, long bytes, int ranks) {
    return set(in, out, bytes, roundUp((bytes + ranks - 1) / ranks), allOf(ranks), allOf(ranks));
  }

  /**
   * Sets a reduction to one rank.
   *
   * @param in the device address of the elements
   * @param out the device address of the result; used only on the root
   * @param bytes the size of each in bytes
   * @param ranks the number of ranks
   * @param root the rank that gets the result
   */
  public ReduceCall reduce(long in, long out, long bytes, int ranks, int root) {
    return set(in, out, bytes, roundUp((bytes + ranks - 1) / ranks), allOf(ranks), 1 << root);
  }

  /**
   * Sets a reduction of which rank r keeps part r.
   *
   * @param in the device address of all parts, one after another
   * @param out the device address of this rank's part
   * @param partBytes the size of a part in bytes
   * @param ranks the number of ranks
   */
  public ReduceCall reduceScatter(long in, long out, long partBytes, int ranks) {
    return set(in, out, partBytes * ranks, partBytes, allOf(ranks), 0);
  }

  /**
   * Sets a reduction of which rank r keeps part r, for {@link Kernels#unequalChunks} and {@link
   * Kernels#unequalTwoShot}.
   *
   * @param in the device address of all parts, one after another
   * @param out the device address of this rank's part
   * @param partBytes the size of each part in bytes, the same numbers on all ranks
   */
  public ReduceCall reduceScatter(long in, long out, long[] partBytes) {
    long bytes = 0;
    long longest = 0;
    for (long part : partBytes) {
      bytes += part;
      longest = Math.max(longest, part);
    }
    set(in, out, bytes, longest, allOf(partBytes.length), 0);
    long begin = 0;
    for (int r = 0; r < partBytes.length; r++) {
      memory.set(ValueLayout.JAVA_LONG, SHARED_OFFSET + 8L * r, begin << 4);
      begin += partBytes[r];
    }
    return this;
  }

  /**
   * Sets a broadcast, which runs on {@link Kernels#broadcast}.
   *
   * @param data the device address of the elements
   * @param bytes the size of the elements in bytes
   * @param ranks the number of ranks
   * @param root the rank whose elements all ranks get
   */
  public ReduceCall broadcast(long data, long bytes, int ranks, int root) {
    int source = 1 << root;
    return set(
        data, data, bytes, roundUp((bytes + ranks - 1) / ranks), source, allOf(ranks) & ~source);
  }

  /**
   * Sets an addition of parts, which runs on {@link Kernels#addParts}; {@link #part} then says
   * where they are.
   *
   * @param out the device address of the result, a multiple of 16; may equal that of one part
   * @param bytes the size of a part in bytes
   * @param ranks the number of parts
   */
  public ReduceCall parts(long out, long bytes, int ranks) {
    return set(0, out, bytes, bytes, allOf(ranks), 0);
  }

  /**
   * Lets an addition of parts count itself.
   *
   * @param word the address of a word of 32 bits that the device can write; 0 for none
   */
  public ReduceCall count(long word) {
    memory.set(ValueLayout.JAVA_LONG, 0, word);
    return this;
  }

  /**
   * Sets where a part is.
   *
   * @param rank the rank whose part it is; parts are added in the order of ranks
   * @param address its device address, a multiple of 16
   */
  public ReduceCall part(int rank, long address) {
    memory.set(ValueLayout.JAVA_LONG, SHARED_OFFSET + 8L * rank, address);
    return this;
  }

  private ReduceCall set(long in, long out, long bytes, long partBytes, int sources, int targets) {
    memory.set(ValueLayout.JAVA_LONG, 0, in);
    memory.set(ValueLayout.JAVA_LONG, 8, out);
    memory.set(ValueLayout.JAVA_LONG, 16, bytes);
    memory.set(ValueLayout.JAVA_LONG, 24, partBytes);
    memory.set(ValueLayout.JAVA_INT, 52, sources);
    memory.set(ValueLayout.JAVA_INT, 56, targets);
    for (int r = 0; r < ChannelLayout.MAX_RANKS; r++) {
      memory.set(ValueLayout.JAVA_LONG, SHARED_OFFSET + 8L * r, 0);
    }
    return this;
  }

  /**
   * Specifies that the result is in memory that the ranks share. Ranks whose results are in the
   * same memory write them there directly for each other, instead of to slots from which {@code
   * tutti_chunks} copies them. Must be called for all ranks or none, after the method that sets the
   * operation, which must not be a reduce-scatter.
   *
   * @param rank the rank that addresses the result, possibly this rank
   * @param address the address of the result, as that rank addresses it; a multiple of 16, as the
   *     length must be
   * @param number the number of the memory, the same on all ranks, from 1 to {@link #MAX_SHARED}
   */
  public ReduceCall shared(int rank, long address, int number) {
    memory.set(ValueLayout.JAVA_LONG, SHARED_OFFSET + 8L * rank, address + number);
    return this;
  }

  /**
   * Sets the operator.
   *
   * @param op an operator that is defined on the kernel's type
   */
  public ReduceCall op(ReduceOp op) {
    memory.set(ValueLayout.JAVA_DOUBLE, 32, op.factor());
    memory.set(ValueLayout.JAVA_INT, 48, code(op.kind()));
    return this;
  }

  /**
   * Sets the deadline of each wait.
   *
   * @param nanos the time allowed from the beginning of a wait; 0 for no limit
   */
  public ReduceCall timeoutNanos(long nanos) {
    memory.set(ValueLayout.JAVA_LONG, 40, nanos);
    return this;
  }

  /**
   * Sets how many bytes a block moves at a time; the same on all ranks, and used only by {@code
   * tutti_chunks}.
   *
   * @param bytes the number of bytes, a multiple of 16 and at most the channel's
   */
  public ReduceCall chunk(int bytes) {
    memory.set(ValueLayout.JAVA_INT, 60, bytes);
    return this;
  }

  /** Returns the number of an operator in protocol.cuh, which is that of c10d. */
  private static int code(ReduceOp.Kind kind) {
    return switch (kind) {
      case SUM -> 0;
      case AVG -> 1;
      case PRODUCT -> 2;
      case MIN -> 3;
      case MAX -> 4;
      case BAND -> 5;
      case BOR -> 6;
      case BXOR -> 7;
      case PREMUL_SUM -> 8;
    };
  }

  private static int allOf(int ranks) {
    return (1 << ranks) - 1;
  }

  private static long roundUp(long bytes) {
    return (bytes + 15) & -16;
  }
}
