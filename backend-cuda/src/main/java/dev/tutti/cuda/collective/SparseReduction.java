package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.CudaTensors;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.Coalescing.Runs;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The sum of sparse tensors of ranks on their devices; it is coalesced, with ascending indices.
 *
 * <table>
 * <caption>Cost for N ranks</caption>
 * <tr><th>steps</th><th>bytes received by each rank</th></tr>
 * <tr><td>three exchanges, each awaited</td><td>8 for each entry of all other ranks, plus its
 * values</td></tr>
 * </table>
 */
public final class SparseReduction {
  /*
   * A rank coalesces its tensor and states how many entries remain, whether an index was out of
   * range, and a fingerprint of type and shape, all in words that never leave the devices before
   * every rank has the words of all ranks. So all ranks decide alike whether to continue, and with
   * how much data. Then the linear places and the values are sent to all ranks, as parts of equal
   * size unless one rank has far more than the others. Each rank coalesces the data of all ranks in
   * rank order, so all get bitwise identical results. The host needs the numbers of entries
   * before it can allocate memory for them. It waits for each exchange, to detect failures.
   */
  private static final int COUNT = 0;
  private static final int OUTSIDE = 1;
  private static final int FINGERPRINT = 2;
  private static final int ENTRIES = 3;
  private static final int WORDS = 4;
  private static final long NOTHING_OUTSIDE = -1;
  private static final long MOST_ENTRIES = Integer.MAX_VALUE;

  /** The factor by which the total may grow so that all ranks can send parts of equal size. */
  private static final long MOST_PADDING = 2;

  private final CudaDevice device;
  private final int rank;
  private final int size;
  private final @Nullable Backend backend;
  private final BooleanSupplier isAborted;

  /**
   * Creates an object that can perform any number of reductions.
   *
   * @param device this rank's device
   * @param rank this rank's number
   * @param size the number of ranks
   * @param backend exchanges tensors on the device; null in a group of one
   * @param isAborted returns whether waits must end
   */
  public SparseReduction(
      CudaDevice device, int rank, int size, @Nullable Backend backend, BooleanSupplier isAborted) {
    this.device = device;
    this.rank = rank;
    this.size = size;
    this.backend = backend;
    this.isAborted = isAborted;
  }

  /**
   * Computes the sum in the calling thread's current stream; the device is done when this returns.
   *
   * @param op the operation, which carries the deadline
   * @param tensor this rank's tensor
   * @param arena the arena that owns the memory of the sum
   * @throws UnsupportedOperationException if nothing was done because the stream is being captured
   *     or the tensor is too large
   * @throws IndexOutOfBoundsException if an index of this rank's tensor is out of range
   * @throws PeerMismatchException if the ranks' shapes or types differ
   * @throws Exception if a wait ended without success
   */
  public Tensor sum(Operation op, Tensor tensor, Arena arena) throws Exception {
    Plan plan = Plan.of(op, rank, tensor);
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      throw plan.refused(
          op, rank, "cannot be captured into a graph because the host has to wait for sizes");
    }
    Parts.of(device).context().enter();
    try (Arena temporary = Arena.ofConfined();
        Coalescing work = new Coalescing(device, stream)) {
      Tensor indices = DeviceCopy.dense(device, temporary, tensor.indices());
      Tensor values = DeviceCopy.dense(device, temporary, tensor.values());
      Tensor own = Tensor.sparse(indices, values, tensor.shape());
      Run run = new Run(op, own, plan, stream, work);
      return backend == null || size == 1 ? run.coalesced(arena) : run.ofAllRanks(backend, arena);
    }
  }

  /**
   * The values that follow from a tensor's type and shape alone.
   *
   * @param bits the number of significant bits in a linear place
   */
  private record Plan(String what, int sparseDims, long rowLength, long rowBytes, int bits) {
    static Plan of(Operation op, int rank, Tensor tensor) {
      int sparseDims = (int) tensor.indices().size(0);
      long[] shape = tensor.shape();
      long rowLength = 1;
      for (int d = sparseDims; d < shape.length; d++) {
        rowLength *= shape[d];
      }
      long rowBytes = rowLength * tensor.dtype().byteSize();
      Plan plan =
          new Plan(tensor.describe(), sparseDims, rowLength, rowBytes, bits(shape, sparseDims));
      if (plan.bits < 0) {
        throw plan.refused(op, rank, "has more than 2^63 places");
      }
      if (tensor.indices().size(1) > MOST_ENTRIES) {
        throw plan.refused(op, rank, "has more than " + MOST_ENTRIES + " entries");
      }
      return plan;
    }

    /**
     * Returns the number of significant bits in a linear place, or -1 if a place can be too large.
     */
    private static int bits(long[] shape, int sparseDims) {
      long places = 1;
      for (int d = 0; d < sparseDims; d++) {
        if (Math.multiplyHigh(places, shape[d]) != 0 || places * shape[d] < 0) {
          return -1;
        }
        places *= shape[d];
      }
      return Long.SIZE - Long.numberOfLeadingZeros(Math.max(0, places - 1));
    }

    UnsupportedOperationException refused(Operation op, int rank, String why) {
      return new UnsupportedOperationException(
          op.type().label() + " on rank " + rank + ": " + what + " " + why);
    }
  }

  /** One call, with its stream. */
  private final class Run {
    private final Operation op;
    private final Tensor tensor;
    private final Plan plan;
    private final CudaStream stream;
    private final Coalescing work;
    private final long entries;
    private final long words;
    private final long sizes;

    Run(Operation op, Tensor tensor, Plan plan, CudaStream stream, Coalescing work) {
      this.op = op;
      this.tensor = tensor;
      this.plan = plan;
      this.stream = stream;
      this.work = work;
      this.entries = tensor.indices().size(1);
      this.words = work.memory((long) (WORDS + plan.sparseDims) * Long.BYTES);
      this.sizes = words + (long) WORDS * Long.BYTES;
      writeWords();
    }

    /**
     * Writes the initial values of this rank's words, before its tensor is examined, followed by
     * the sizes.
     */
    private void writeWords() {
      PinnedAllocator pinned = Parts.of(device).pinned();
      long bytes = (long) (WORDS + plan.sparseDims) * Long.BYTES;
      PinnedBlock block = pinned.allocate(bytes);
      boolean isLost = false;
      try {
        long[] shape = tensor.shape();
        long fingerprint = 31L * tensor.dtype().label().hashCode() + plan.sparseDims;
        for (long each : shape) {
          fingerprint = (fingerprint ^ each) * 0x100000001b3L;
        }
        MemorySegment to = block.segment();
        to.setAtIndex(ValueLayout.JAVA_LONG, COUNT, 0);
        to.setAtIndex(ValueLayout.JAVA_LONG, OUTSIDE, NOTHING_OUTSIDE);
        to.setAtIndex(ValueLayout.JAVA_LONG, FINGERPRINT, fingerprint);
        to.setAtIndex(ValueLayout.JAVA_LONG, ENTRIES, entries);
        MemorySegment.copy(shape, 0, to, ValueLayout.JAVA_LONG, 8L * WORDS, plan.sparseDims);
        Parts.of(stream).copy(words, block.address(), bytes);
        isLost = true;
        pinned.useOn(block, stream.handle());
        isLost = false;
      } finally {
        if (!isLost) {
          pinned.free(block);
        }
      }
    }

    private List<Runs> coalesce() {
      if (entries == 0) {
        return List.of();
      }
      long keys = work.places(tensor.indices(), sizes, words + 8L * OUTSIDE);
      return List.of(work.runs(keys, entries, plan.bits, words + 8L * COUNT));
    }

    Tensor coalesced(Arena arena) throws Exception {
      List<Runs> runs = coalesce();
      long[] own = read(words, WORDS);
      requireInside(rank, own, 0);
      return result(arena, runs, own[COUNT], tensor.values().segment().address());
    }

    Tensor ofAllRanks(Backend others, Arena arena) throws Exception {
      List<Runs> runs = coalesce();
      long gathered = work.memory((long) size * WORDS * Long.BYTES);
      InnerOperation gather = new InnerOperation(op);
      others.allGatherInto(gather, words(gathered, (long) size * WORDS), words(words, WORDS));
      long values = work.memory(entries * plan.rowBytes);
      for (Runs own : runs) {
        Parts.of(device).context().enter();
        long from = tensor.values().segment().address();
        work.sum(tensor.dtype(), own, from, plan.rowLength, values);
      }
      gather.awaitDevice(isAborted);
      long[] all = read(gathered, size * WORDS);
      check(all);
      long[] counts = new long[size];
      long total = 0;
      for (int r = 0; r < size; r++) {
        counts[r] = all[r * WORDS + COUNT];
        total += counts[r];
      }
      if (total > MOST_ENTRIES) {
        throw new BackendException(
            "the tensors of all ranks have " + total + " entries, more than " + MOST_ENTRIES);
      }
      if (total == 0) {
        return result(arena, List.of(), 0, values);
      }
      long places = runs.isEmpty() ? words : runs.getFirst().distinct();
      long allKeys = exchange(others, counts, places, Long.BYTES);
      long allValues = exchange(others, counts, values, plan.rowBytes);
      long count = work.memory(Long.BYTES);
      List<Runs> sums = List.of(work.runs(allKeys, total, plan.bits, count));
      return result(arena, sums, read(count, 1)[0], allValues);
    }

    /**
     * Sends rows of this rank to all ranks; returns the address of the rows of all ranks, in rank
     * order.
     */
    private long exchange(Backend others, long[] counts, long from, long rowBytes)
        throws Exception {
      long total = Arrays.stream(counts).sum();
      long most = Arrays.stream(counts).max().orElse(0);
      if (rowBytes == 0) {
        return from;
      }
      if (size * most > MOST_PADDING * total) {
        return exchangeUneven(others, counts, from, rowBytes);
      }
      long bytes = most * rowBytes;
      long parts = work.memory(size * bytes);
      Parts.of(stream).copy(parts + rank * bytes, from, counts[rank] * rowBytes);
      InnerOperation gather = new InnerOperation(op);
      others.allGatherInto(gather, bytes(parts, size * bytes), bytes(parts + rank * bytes, bytes));
      gather.awaitDevice(isAborted);
      Parts.of(device).context().enter();
      if (most * size == total) {
        return parts;
      }
      long rows = work.memory(total * rowBytes);
      long at = rows;
      for (int r = 0; r < size; r++) {
        Parts.of(stream).copy(at, parts + r * bytes, counts[r] * rowBytes);
        at += counts[r] * rowBytes;
      }
      return rows;
    }

    private long exchangeUneven(Backend others, long[] counts, long from, long rowBytes)
        throws Exception {
      long rows = work.memory(Arrays.stream(counts).sum() * rowBytes);
      Tensor own = bytes(from, counts[rank] * rowBytes);
      List<Tensor> parts = new ArrayList<>();
      long at = rows;
      for (long count : counts) {
        parts.add(bytes(at, count * rowBytes));
        at += count * rowBytes;
      }
      InnerOperation exchange = new InnerOperation(op);
      others.allToAll(exchange, parts, Collections.nCopies(size, own));
      exchange.awaitDevice(isAborted);
      Parts.of(device).context().enter();
      return rows;
    }

    private Tensor words(long address, long count) {
      return BlockTensors.view(
          device.device(), memory(address, count * Long.BYTES), DType.INT64, count);
    }

    private Tensor bytes(long address, long count) {
      return BlockTensors.view(device.device(), memory(address, count), DType.UINT8, count);
    }

    private MemorySegment memory(long address, long bytes) {
      return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    private void check(long[] all) throws Exception {
      for (int r = 0; r < size; r++) {
        if (all[r * WORDS + FINGERPRINT] != all[rank * WORDS + FINGERPRINT]) {
          throw new PeerMismatchException(
              String.format(
                  "sparse dimensions do not match: rank %d called %s with %s, rank %d with another"
                      + " shape or dtype",
                  rank, op.type().label(), plan.what, r));
        }
        requireInside(r, all, r * WORDS);
      }
    }

    /** Checks the words of a rank, which begin at the given offset. */
    private void requireInside(int r, long[] all, int offset) throws Exception {
      long outside = all[offset + OUTSIDE];
      if (outside == NOTHING_OUTSIDE) {
        return;
      }
      long dimension = outside / all[offset + ENTRIES];
      String text =
          String.format(
              "rank %d called %s with indices[%d, %d] outside dimension %d of %s",
              r,
              op.type().label(),
              dimension,
              outside % all[offset + ENTRIES],
              dimension,
              plan.what);
      if (r != rank) {
        throw new BackendException(text);
      }
      long index = read(tensor.indices().segment().address() + 8 * outside, 1)[0];
      throw new IndexOutOfBoundsException(text + ": " + index);
    }

    /** Sums the rows of all runs, if there are any. */
    private Tensor result(Arena arena, List<Runs> runs, long count, long values) throws Exception {
      CudaTensors tensors = device.tensors();
      long[] shape = tensor.values().shape();
      shape[0] = count;
      Tensor indices = tensors.allocate(arena, DType.INT64, plan.sparseDims, count);
      Tensor sums = tensors.allocate(arena, tensor.dtype(), shape);
      for (Runs each : runs) {
        long out = sums.segment().address();
        work.coordinates(each, count, sizes, plan.sparseDims, indices.segment().address());
        work.sum(tensor.dtype(), each, values, plan.rowLength, out);
      }
      await();
      return Tensor.sparse(indices, sums, tensor.shape());
    }

    /** Copies words from the device to the host. */
    private long[] read(long address, int count) throws Exception {
      PinnedAllocator pinned = Parts.of(device).pinned();
      PinnedBlock block = pinned.allocate((long) count * Long.BYTES);
      boolean isLost = false;
      try {
        Parts.of(device).context().enter();
        Parts.of(stream).copy(block.address(), address, (long) count * Long.BYTES);
        isLost = true;
        pinned.useOn(block, stream.handle());
        isLost = false;
        await();
        return block.segment().asSlice(0, (long) count * Long.BYTES).toArray(ValueLayout.JAVA_LONG);
      } finally {
        if (!isLost) {
          pinned.free(block);
        }
      }
    }

    private void await() throws Exception {
      InnerOperation reached = new InnerOperation(op);
      reached.enqueued(stream.record());
      reached.awaitDevice(isAborted);
    }
  }
}
