package dev.tutti.lightgbm;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The functions that LightGBM calls instead of its sockets: reduce-scatter and all-gather.
 *
 * <p>LightGBM is C++ and calls these from the middle of its training, so nothing may be thrown
 * through its frames. After a failure, LightGBM gets data on which it can continue until its next
 * call, and that call must fail inside LightGBM. The failure is therefore kept, and {@code
 * onFailure} takes this thread out of the network, whereupon LightGBM itself throws an exception
 * that it can clean up after. The stand-in data is this rank's own part, which also replaces the
 * parts of the other ranks if all parts are alike, as sums, best splits and counts are. Parts of
 * unequal size are consecutive lists of histogram bounds, and a wrong end position would make
 * LightGBM read beyond them; these are replaced by zeros, which are empty lists.
 *
 * <p>LightGBM keeps one network per thread, so all calls come from the thread that opened it.
 */
final class NetworkFunctions {
  private static final Linker LINKER = Linker.nativeLinker();
  private static final FunctionDescriptor REDUCE_SCATTER =
      FunctionDescriptor.ofVoid(
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS);
  private static final FunctionDescriptor ALL_GATHER =
      FunctionDescriptor.ofVoid(
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_INT);
  private static final FunctionDescriptor REDUCE =
      FunctionDescriptor.ofVoid(
          ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
  private static final int MIN_SCRATCH = 1 << 20;

  private final ProcessGroup group;
  private final Runnable onFailure;
  private final MethodHandle reduce = reduceHandle();
  private Tensor scratch = Tensor.allocate(DType.UINT8, MIN_SCRATCH);
  private @Nullable Throwable failure;

  NetworkFunctions(ProcessGroup group, Runnable onFailure) {
    this.group = group;
    this.onFailure = onFailure;
  }

  @SuppressWarnings("restricted")
  private static MethodHandle reduceHandle() {
    return LINKER.downcallHandle(REDUCE);
  }

  MemorySegment reduceScatterPointer(Arena arena) {
    return pointer("reduceScatter", REDUCE_SCATTER, arena);
  }

  MemorySegment allGatherPointer(Arena arena) {
    return pointer("allGather", ALL_GATHER, arena);
  }

  /** Returns a reduction that leaves its data as it is. */
  MemorySegment idleReducer(Arena arena) {
    return pointer("keep", REDUCE, arena);
  }

  @SuppressWarnings("unused") // by name
  private void keep(MemorySegment from, MemorySegment into, int typeSize, int length) {}

  @SuppressWarnings("restricted")
  private MemorySegment pointer(String method, FunctionDescriptor descriptor, Arena arena) {
    try {
      MethodType type = descriptor.toMethodType();
      MethodHandle handle =
          MethodHandles.lookup().findVirtual(NetworkFunctions.class, method, type).bindTo(this);
      return LINKER.upcallStub(handle, descriptor, arena);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** Returns the first failure of the group, which ended the network; or null. */
  @Nullable Throwable failure() {
    return failure;
  }

  /** Reduces blocks of bytes, one for each rank, to their ranks; never throws. */
  void reduceScatter(
      MemorySegment input,
      int inputSize,
      int typeSize,
      MemorySegment blockStart,
      MemorySegment blockLength,
      int blocks,
      MemorySegment output,
      int outputSize,
      MemorySegment reducer) {
    try {
      Blocks all = Blocks.of(blockStart, blockLength, blocks);
      MemorySegment from = sized(input, all.end());
      MemorySegment own = sized(output, all.length(group.rank()));
      try {
        all.requireRanks(group.size());
        scatter(from, all, own, typeSize, addressAt(reducer));
      } catch (Throwable e) {
        end(e);
        MemorySegment.copy(from, all.start(group.rank()), own, 0, own.byteSize());
      }
    } catch (Throwable e) {
      end(e);
    }
  }

  private void scatter(
      MemorySegment input,
      Blocks blocks,
      MemorySegment output,
      int typeSize,
      MemorySegment reducer) {
    int rank = group.rank();
    int size = group.size();
    int length = blocks.length(rank);
    Tensor parts = scratch((long) length * size);
    long[] fromEach = new long[size];
    Arrays.fill(fromEach, length);
    group.allToAllSingle(
        parts, Tensor.wrap(input, DType.UINT8, input.byteSize()), fromEach, blocks.lengths());
    MemorySegment memory = parts.segment();
    int result =
        length == 0
            ? rank
            : ReductionOrder.reduce(
                rank,
                size,
                input.byteSize(),
                (from, into) ->
                    reduce(
                        reducer,
                        memory.asSlice((long) from * length, length),
                        memory.asSlice((long) into * length, length),
                        typeSize));
    MemorySegment.copy(memory, (long) result * length, output, 0, length);
  }

  private void reduce(MemorySegment reducer, MemorySegment from, MemorySegment into, int typeSize) {
    try {
      reduce.invokeExact(reducer, from, into, typeSize, (int) from.byteSize());
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Gathers blocks of bytes, one from each rank, on all ranks; never throws. */
  void allGather(
      MemorySegment input,
      int inputSize,
      MemorySegment blockStart,
      MemorySegment blockLength,
      int blocks,
      MemorySegment output,
      int outputSize) {
    try {
      Blocks all = Blocks.of(blockStart, blockLength, blocks);
      int rank = group.rank();
      MemorySegment into = sized(output, all.end());
      MemorySegment own = into.asSlice(all.start(rank), all.length(rank));
      // The input may be the beginning of the output.
      own.copyFrom(sized(input, all.length(rank)));
      try {
        all.requireRanks(group.size());
        gather(all, into);
      } catch (Throwable e) {
        end(e);
        standIn(all, into);
      }
    } catch (Throwable e) {
      end(e);
    }
  }

  private void gather(Blocks blocks, MemorySegment output) {
    int rank = group.rank();
    long part = blocks.longest();
    if (blocks.areEqual()) {
      Tensor whole = Tensor.wrap(output, DType.UINT8, output.byteSize());
      group.allGatherInto(whole, whole.narrow(0, rank * part, part));
      return;
    }
    Tensor padded = scratch(part * blocks.count());
    MemorySegment memory = padded.segment();
    MemorySegment.copy(output, blocks.start(rank), memory, rank * part, blocks.length(rank));
    group.allGatherInto(padded, padded.narrow(0, rank * part, part));
    for (int i = 0; i < blocks.count(); i++) {
      MemorySegment.copy(memory, i * part, output, blocks.start(i), blocks.length(i));
    }
  }

  /**
   * Writes data on which LightGBM can continue until its next call, as described in the class
   * comment.
   */
  private void standIn(Blocks blocks, MemorySegment output) {
    if (!blocks.areEqual()) {
      output.fill((byte) 0);
      return;
    }
    for (int i = 0; i < blocks.count(); i++) {
      if (i != group.rank()) {
        MemorySegment.copy(
            output, blocks.start(group.rank()), output, blocks.start(i), blocks.length(i));
      }
    }
  }

  private void end(Throwable e) {
    if (failure == null) {
      failure = e;
    }
    onFailure.run();
  }

  /** Returns memory that ranks of the same host can read in place; its content is undefined. */
  private Tensor scratch(long bytes) {
    if (scratch.numel() < bytes) {
      scratch = Tensor.allocate(DType.UINT8, Math.max(bytes, 2 * scratch.numel()));
    }
    return scratch.narrow(0, 0, bytes);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment sized(MemorySegment address, long bytes) {
    return address.reinterpret(bytes);
  }

  /** Reads a C++ reference to a pointer. */
  private static MemorySegment addressAt(MemorySegment reference) {
    return sized(reference, ValueLayout.ADDRESS.byteSize()).get(ValueLayout.ADDRESS, 0);
  }
}
