package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.ReduceCall;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;

/**
 * The all-reduce by copy engines, for tensors that are reduced beside computation: each rank copies
 * part r of its tensor to rank r, adds what all ranks copied to it, and copies the result to all.
 * It waits by memory operations of streams, so it occupies no multiprocessor while it waits.
 *
 * <p>With N ranks and S bytes: 2 steps, in which a rank sends 2 (N-1)/N S bytes; its kernel reads S
 * bytes and writes S/N. Not thread-safe, except that any thread may abort.
 */
final class CopiedAllReduce {
  /*
   * A tensor is reduced in pieces, which alternate between two slots: while the parts of one piece
   * are added, those of the next are copied. A peer raises flags in this rank's memory: that its
   * part of the first piece is there, and, for each slot, that its result is. It copies its part of
   * the next piece before its result, so that flag also says that the next part is there. A flag is
   * 1 until this rank has waited for it, and then 0, so that a graph can be replayed. The flags are
   * credits for each other: a peer raises one again only after it has seen a flag of this rank that
   * this rank raised after it had waited for the last one.
   *
   * In place, a peer writes its result where this rank's part for it was; it has that part then.
   */
  private static final int SLOTS = 2;

  /** The kind of the flag for the first part; those below are for the results of slots. */
  private static final int FIRST_PART = SLOTS;

  private static final int KINDS = SLOTS + 1;
  private static final long ALIGNMENT = 16;

  private final Time time;
  private final CudaDevice device;
  private final HostKernels kernels;
  private final CudaSymmetricMemories symmetric;
  private final ChannelLayout layout;
  private final int rank;
  private final int size;
  private final long pieceBytes;
  private final Piece[] slots = new Piece[SLOTS];
  private final ReduceCall add;
  private final KernelParameters parameters;
  private final CopyProgress progress;
  private @Nullable Staging staging;
  private @Nullable CudaSymmetricMemory bounce;
  private boolean isFull;
  private boolean aborted;

  /** The piece of a tensor that a slot has. */
  private static final class Piece {
    /** Where each rank's piece is; others see this rank's there. */
    final long[] at;

    /** Where the piece is, if it is reduced in other memory; else 0. */
    long outside;

    long bytes;
    long partBytes;

    Piece(int size) {
      at = new long[size];
    }

    long begin(int part) {
      return Math.min(bytes, part * partBytes);
    }

    long length(int part) {
      return begin(part + 1) - begin(part);
    }
  }

  /** The memory that peers copy to, with its flags, and the stream of this rank's copies. */
  private record Staging(CudaSymmetricMemory memory, CudaStream copies, FlagRelease release) {}

  /**
   * Creates an all-reduce that has no memory yet.
   *
   * @param time the time of the group
   * @param device this rank's device
   * @param kernels the device's kernels
   * @param symmetric the group's symmetric memories
   * @param layout the channel of all ranks
   * @param rank this rank's number
   * @param pieceBytes the size of a piece in bytes
   */
  CopiedAllReduce(
      Time time,
      CudaDevice device,
      HostKernels kernels,
      CudaSymmetricMemories symmetric,
      ChannelLayout layout,
      int rank,
      long pieceBytes) {
    this.time = time;
    this.device = device;
    this.kernels = kernels;
    this.symmetric = symmetric;
    this.layout = layout;
    this.rank = rank;
    this.size = layout.ranks();
    long parts = size * ALIGNMENT;
    this.pieceBytes = Math.max(1, Math.ceilDiv(pieceBytes, parts)) * parts;
    for (int s = 0; s < SLOTS; s++) {
      slots[s] = new Piece(size);
    }
    add = new ReduceCall(Arena.ofAuto().allocate(ReduceCall.BYTES, Long.BYTES));
    progress = new CopyProgress(device);
    parameters = new KernelParameters(1).at(0, add.memory());
  }

  /** Returns whether all ranks can write each other's results into a tensor's own memory. */
  boolean isInPlace(long address, long bytes) {
    return memoryOf(address, bytes) != null;
  }

  private @Nullable CudaSymmetricMemory memoryOf(long address, long bytes) {
    return (address & (ALIGNMENT - 1)) == 0 ? symmetric.find(address, bytes) : null;
  }

  /**
   * Allocates the memory for a tensor, unless it is there; all ranks must call this together.
   *
   * @param op the operation, which carries the deadline
   * @param inPlace whether the tensor is reduced in its own memory
   * @return false on all ranks, if there is none, because a stream is being captured or a device is
   *     full
   */
  boolean isReady(Operation op, boolean inPlace) {
    if (isFull) {
      return false;
    }
    boolean lacksStaging = staging == null;
    boolean lacksBounce = !inPlace && bounce == null;
    if ((lacksStaging || lacksBounce) && device.currentStream().isCapturing()) {
      return false;
    }
    try {
      if (lacksStaging) {
        allocateStaging(op);
      }
      if (lacksBounce) {
        bounce = symmetric.allocate(op, SLOTS * pieceBytes);
      }
    } catch (BackendException e) {
      isFull = true;
    }
    return !isFull;
  }

  private void allocateStaging(Operation op) {
    long flags = (long) KINDS * size * Integer.BYTES;
    CudaSymmetricMemory memory = symmetric.allocate(op, SLOTS * pieceBytes + flags);
    FlagRelease release =
        new FlagRelease(time, device, memory.address(rank, SLOTS * pieceBytes), KINDS * size, rank);
    progress.open();
    synchronized (this) {
      staging = new Staging(memory, Parts.of(device).takeStream(), release);
      if (aborted) {
        release.start();
      }
    }
  }

  private long part(Staging in, int owner, int slot, int from) {
    return in.memory.address(owner, slot * pieceBytes + from * (pieceBytes / size));
  }

  private long flag(Staging in, int owner, int kind, int from) {
    long index = (long) kind * size + from;
    return in.memory.address(owner, SLOTS * pieceBytes + index * Integer.BYTES);
  }

  /**
   * Enqueues the reduction of a tensor, for which {@link #isReady} returned true.
   *
   * @param address the address of the tensor
   * @param bytes its size in bytes, at least 1
   * @param stream the stream after whose work it begins, and whose later work finds the result
   */
  void launch(long address, long bytes, DType dtype, ReduceOp op, CudaStream stream) {
    Staging in = staging;
    if (in == null) {
      throw new AssertionError("nothing is allocated");
    }
    boolean isCaptured = stream.isCapturing();
    if (isCaptured) {
      calls().writeValue(stream.handle(), progress.running(), 1);
    }
    CudaSymmetricMemory own = memoryOf(address, bytes);
    long pieces = Math.ceilDiv(bytes, pieceBytes);
    Kernel kernel = Kernels.addParts(dtype);
    for (long i = 0; i <= pieces; i++) {
      if (i >= SLOTS) {
        finish(in, slot(i - SLOTS), stream);
      }
      if (i < pieces) {
        long begin = i * pieceBytes;
        place(slot(i), own, address + begin, Math.min(pieceBytes, bytes - begin));
        enter(in, slot(i), i, stream);
        send(in, slot(i), i == 0);
      }
      if (i > 0) {
        if (i == 1) {
          await(in, FIRST_PART, stream);
        }
        add(in, slot(i - 1), kernel, op, stream, isCaptured);
      }
    }
    finish(in, slot(pieces - 1), stream);
    stream.waitFor(in.copies);
    if (isCaptured) {
      calls().writeValue(stream.handle(), progress.running(), 0);
    }
  }

  /** Returns how far captured copies are. */
  CopyProgress progress() {
    return progress;
  }

  private static int slot(long piece) {
    return (int) (piece % SLOTS);
  }

  private void place(int slot, @Nullable CudaSymmetricMemory own, long address, long bytes) {
    Piece piece = slots[slot];
    CudaSymmetricMemory memory = own == null ? bounce : own;
    if (memory == null) {
      throw new AssertionError("nothing is allocated");
    }
    long offset = own == null ? slot * pieceBytes : own.offset(address);
    for (int r = 0; r < size; r++) {
      piece.at[r] = memory.address(r, offset);
    }
    piece.outside = own == null ? address : 0;
    piece.bytes = bytes;
    piece.partBytes = Math.ceilDiv(bytes, size * ALIGNMENT) * ALIGNMENT;
  }

  private StreamCalls calls() {
    return Parts.of(device).context().driver().streams();
  }

  /** Orders a piece after the caller's work, and after the last piece in its slot. */
  private void enter(Staging in, int slot, long index, CudaStream stream) {
    Piece piece = slots[slot];
    if (piece.outside != 0) {
      if (index >= SLOTS) {
        stream.waitFor(in.copies);
      }
      calls().copy(piece.at[rank], piece.outside, piece.bytes, stream.handle());
    }
    // In place, the second piece comes after the same work as the first.
    if (piece.outside != 0 || index != 1) {
      in.copies.waitFor(stream);
    }
  }

  /** Copies this rank's parts to their ranks. */
  private void send(Staging in, int slot, boolean isFirst) {
    StreamCalls calls = calls();
    Piece piece = slots[slot];
    long copies = in.copies.handle();
    for (int i = 1; i < size; i++) {
      int to = (rank + i) % size;
      if (piece.length(to) > 0) {
        long from = piece.at[rank] + piece.begin(to);
        calls.copy(part(in, to, slot, rank), from, piece.length(to), copies);
      }
      if (isFirst) {
        calls.writeValue(copies, flag(in, to, FIRST_PART, rank), 1);
      }
    }
  }

  /** Adds what all ranks sent, and copies the result to all. */
  private void add(
      Staging in, int slot, Kernel kernel, ReduceOp op, CudaStream stream, boolean isCaptured) {
    StreamCalls calls = calls();
    Piece piece = slots[slot];
    long own = piece.at[rank] + piece.begin(rank);
    long length = piece.length(rank);
    if (length > 0) {
      add.parts(own, length, size).op(op).count(isCaptured ? progress.count() : 0);
      for (int r = 0; r < size; r++) {
        add.part(r, r == rank ? own : part(in, rank, slot, r));
      }
      kernels.launch(kernel, kernel.launch(length, layout), stream.handle(), parameters.address());
    }
    long copies = in.copies.handle();
    in.copies.waitFor(stream);
    for (int i = 1; i < size; i++) {
      int to = (rank + i) % size;
      if (length > 0) {
        calls.copy(piece.at[to] + piece.begin(rank), own, length, copies);
      }
      calls.writeValue(copies, flag(in, to, slot, rank), 1);
    }
  }

  /** Waits for the results of all ranks. */
  private void finish(Staging in, int slot, CudaStream stream) {
    Piece piece = slots[slot];
    await(in, slot, stream);
    if (piece.outside != 0) {
      calls().copy(piece.outside, piece.at[rank], piece.bytes, stream.handle());
    }
  }

  private void await(Staging in, int kind, CudaStream stream) {
    StreamCalls calls = calls();
    for (int i = 1; i < size; i++) {
      long flag = flag(in, rank, kind, (rank + size - i) % size);
      calls.waitValue(stream.handle(), flag, 1);
      calls.writeValue(stream.handle(), flag, 0);
    }
  }

  /** Ends all waits, now and in the future; what is reduced then is undefined. */
  synchronized void abort() {
    aborted = true;
    if (staging != null) {
      staging.release.start();
    }
  }

  /**
   * Gives the streams back; nothing may be running. The memory is closed with the group's.
   *
   * @param deadlineNanos the deadline, in terms of the group's time
   * @return false if the memory may still be used after the deadline
   */
  synchronized boolean close(long deadlineNanos) {
    if (staging == null) {
      return true;
    }
    if (!staging.release.stop(deadlineNanos)) {
      return false;
    }
    Parts.of(device).giveStream(staging.copies);
    staging = null;
    progress.close();
    return true;
  }
}
