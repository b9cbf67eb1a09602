package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Brings tensors of one device to the host and back for the operations of a group, one after the
 * other, on two streams of its own: one for each direction, as the device has a copy engine for
 * each.
 */
final class HostWork {
  /*
   * An operation begins behind what the caller's stream had at the call. Copies to the host need that
   * since they read what was computed there, copies to the device since something there may still
   * read what they write.
   */
  private static final int AHEAD = 3;
  private static final long SPIN_NANOS = 200_000;
  private static final long PARK_NANOS = 20_000;
  private static final long END_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final CudaDevice device;
  private final int rank;
  private final BooleanSupplier isAborted;
  private final PinnedAllocator pinned;
  private final StreamCalls calls;
  private final CudaStream toHost;
  private final CudaStream toDevice;
  private final List<Part> parts = Collections.synchronizedList(new ArrayList<>());

  HostWork(CudaDevice device, int rank, BooleanSupplier isAborted) {
    this.device = device;
    this.rank = rank;
    this.isAborted = isAborted;
    this.pinned = device.pinned();
    this.calls = device.context().driver().streams();
    this.toHost = device.reserve().take();
    this.toDevice = device.reserve().take();
  }

  /** Runs an operation of the host on a part of a tensor. */
  interface PartCall {
    void run(Tensor part) throws Exception;
  }

  /** Is a tensor of the device, or a part of one, with its stand-in on the host. */
  static final class Part {
    private final long address;
    private final long bytes;
    private final boolean isResult;
    private final @Nullable PinnedBlock block;
    private final Tensor host;
    private boolean isRead;

    /** Says that nobody can tell when the device is done with it. */
    private boolean isLost;

    private Part(
        long address, long bytes, boolean isResult, @Nullable PinnedBlock block, Tensor host) {
      this.address = address;
      this.bytes = bytes;
      this.isResult = isResult;
      this.block = block;
      this.host = host;
    }

    Tensor host() {
      return host;
    }
  }

  /**
   * Marks where the calling thread's stream is.
   *
   * @throws UnsupportedOperationException if it records a graph
   */
  static CudaEvent mark(CudaDevice device) {
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          "an operation of a Gloo group cannot be recorded into a graph, as the host does it");
    }
    return stream.record();
  }

  /** Begins an operation behind the work of its caller. */
  void begin(Operation op) {
    begin(
        op,
        device,
        event -> {
          toHost.waitFor(event);
          toDevice.waitFor(event);
        });
  }

  /**
   * Orders something behind the work of an operation's caller.
   *
   * @param op the operation
   * @param device of its tensors
   * @param order orders it behind an event
   */
  static void begin(Operation op, CudaDevice device, Consumer<CudaEvent> order) {
    device.context().enter();
    DeviceEvent known = op.callerEvent();
    if (known instanceof CudaEvent event && event.device().equals(device)) {
      order.accept(event);
    } else {
      try (CudaEvent event = mark(device)) {
        order.accept(event);
      }
    }
  }

  /** Takes a tensor that the operation reads. */
  Part input(Tensor tensor) {
    return take(tensor, true, false);
  }

  /** Takes a tensor that the operation writes. */
  Part output(Tensor tensor) {
    return take(tensor, false, true);
  }

  /** Takes a tensor that the operation reads and writes. */
  Part inOut(Tensor tensor) {
    return take(tensor, true, true);
  }

  private Part take(Tensor tensor, boolean isRead, boolean isResult) {
    boolean good = false;
    try {
      requireUsable(tensor);
      long address = tensor.segment().address();
      Part part = part(parts, address, tensor.dtype(), tensor.shape(), isRead, isResult);
      good = true;
      return part;
    } finally {
      if (!good) {
        // The operation has not begun, so nobody else ends it.
        end(false);
      }
    }
  }

  private void requireUsable(Tensor tensor) {
    if (tensor.device().index() != device.index() || !tensor.segment().scope().isAlive()) {
      throw new UnsupportedOperationException(
          "rank "
              + rank
              + ": the memory of all tensors of an operation must be there, and on "
              + device
              + " like that of the first, not "
              + tensor.describe());
    }
  }

  /** Adds a part to some; what fails from there on leaves it to who ends those. */
  private Part part(
      Collection<Part> to,
      long address,
      DType dtype,
      long[] shape,
      boolean isRead,
      boolean isResult) {
    long bytes = dtype.byteSize();
    for (long size : shape) {
      bytes *= size;
    }
    if (bytes == 0) {
      Part empty = new Part(address, 0, isResult, null, Tensor.allocate(dtype, shape));
      to.add(empty);
      return empty;
    }
    PinnedBlock block = pinned.allocate(bytes);
    MemorySegment memory = block.segment().asSlice(0, bytes);
    Part part = new Part(address, bytes, isResult, block, Tensor.of(memory, dtype, shape));
    to.add(part);
    if (isRead) {
      device.context().enter();
      calls.copy(block.address(), address, bytes, toHost.handle());
      part.isLost = true;
      pinned.useOn(block, toHost.handle());
      part.isLost = false;
      part.isRead = true;
    }
    return part;
  }

  /** Waits until all that the operation reads is on the host. */
  void awaitInputs(Operation op) throws Exception {
    for (Part part : parts) {
      if (part.isRead) {
        await(op, part);
      }
    }
  }

  /** Puts the copies of all results into their stream. */
  void copyBack() {
    device.context().enter();
    parts.forEach(this::copyBack);
  }

  private void copyBack(Part part) {
    PinnedBlock block = part.block;
    if (part.isResult && block != null) {
      calls.copy(part.address, block.address(), part.bytes, toDevice.handle());
      part.isLost = true;
      pinned.useOn(block, toDevice.handle());
      part.isLost = false;
    }
  }

  /**
   * Copies a tensor of the host to a new one of the device, and waits for it.
   *
   * @throws TimeoutException if the operation's deadline comes first
   */
  Tensor copyOf(Operation op, Tensor host) throws TimeoutException {
    try (CudaStream.Scope _ = toDevice.use()) {
      Tensor copy = device.tensors().copyOf(host);
      try (CudaEvent event = toDevice.record()) {
        if (!event.awaitReached(op.deadlineNanos())) {
          throw new TimeoutException("rank " + rank + ": " + device + " did not copy in time");
        }
      }
      keepForCaller(op, device, copy);
      return copy;
    }
  }

  /** Lets a result that the caller frees wait for the stream of the call, which reads it. */
  static void keepForCaller(Operation op, CudaDevice device, Tensor result) {
    if (result.isSparse()) {
      keepForCaller(op, device, result.indices());
      keepForCaller(op, device, result.values());
    } else if (op.callerEvent() instanceof CudaEvent event
        && event.device().equals(device)
        && event.stream() != null
        && result.numel() > 0) {
      device.tensors().useOn(result, event.stream());
    }
  }

  /** Coalesces a sparse tensor on the device, on the way to the host. */
  Tensor coalesced(Operation op, Tensor sparse, Arena arena) throws Exception {
    try (CudaStream.Scope _ = toHost.use()) {
      return SparseReduction.alone(device, rank, isAborted).sum(op, sparse, arena);
    }
  }

  /** Waits until all results are on the device. */
  void awaitOutputs(Operation op) throws Exception {
    for (Part part : parts) {
      if (part.isResult) {
        await(op, part);
      }
    }
  }

  private void await(Operation op, Part part) throws Exception {
    PinnedBlock block = part.block;
    if (block == null || pinned.isIdle(block)) {
      return;
    }
    long spinUntil = System.nanoTime() + SPIN_NANOS;
    while (!pinned.isIdle(block)) {
      long now = System.nanoTime();
      op.throwIfFailed();
      if (isAborted.getAsBoolean()) {
        throw new BackendException("the group was aborted");
      }
      if (now - op.deadlineNanos() >= 0) {
        throw new TimeoutException(
            "rank " + rank + ": " + device + " did not copy the tensor in time");
      }
      if (now - spinUntil < 0) {
        Thread.onSpinWait();
      } else {
        LockSupport.parkNanos(PARK_NANOS);
      }
    }
  }

  /**
   * Runs an elementwise operation part by part, so that the copies of the parts before and behind
   * go on meanwhile.
   *
   * @param op the operation
   * @param tensor of the device, read and written in place
   * @param chunkBytes of a part
   * @param isRead whether the host needs it
   * @param isResult whether the device gets it back
   * @param call runs the operation on a part
   */
  void pipeline(
      Operation op, Tensor tensor, long chunkBytes, boolean isRead, boolean isResult, PartCall call)
      throws Exception {
    requireUsable(tensor);
    DType dtype = tensor.dtype();
    long count = chunkBytes / dtype.byteSize();
    long numel = tensor.numel();
    long address = tensor.segment().address();
    ArrayDeque<Part> ahead = new ArrayDeque<>();
    ArrayDeque<Part> back = new ArrayDeque<>();
    long next = 0;
    boolean good = false;
    try {
      while (next < numel || !ahead.isEmpty()) {
        device.context().enter();
        while (next < numel && ahead.size() < AHEAD) {
          long[] shape = {Math.min(count, numel - next)};
          part(ahead, address + next * dtype.byteSize(), dtype, shape, isRead, isResult);
          next += shape[0];
        }
        Part part = ahead.getFirst();
        await(op, part);
        call.run(part.host);
        device.context().enter();
        copyBack(part);
        back.addLast(ahead.removeFirst());
        if (back.size() > AHEAD) {
          await(op, back.getFirst());
          free(back.removeFirst());
        }
      }
      while (!back.isEmpty()) {
        await(op, back.getFirst());
        free(back.removeFirst());
      }
      good = true;
    } finally {
      parts.addAll(ahead);
      parts.addAll(back);
      end(good);
    }
  }

  private void free(Part part) {
    PinnedBlock block = part.block;
    if (block != null) {
      pinned.free(block);
    }
  }

  /**
   * Gives the memory back; after a failure only once nothing of it is copied any more. Close may
   * call it meanwhile.
   */
  void end(boolean good) {
    boolean idle = good || awaitIdle();
    List<Part> own;
    synchronized (parts) {
      own = List.copyOf(parts);
      parts.clear();
    }
    for (Part part : own) {
      if (!idle) {
        device.allocator().keepFor(part.address, toHost.forBlocks(), toDevice.forBlocks());
        device.sharable().keepFor(part.address, toHost.forBlocks(), toDevice.forBlocks());
      }
      if (idle || !part.isLost) {
        free(part);
      }
    }
  }

  private boolean awaitIdle() {
    long until = System.nanoTime() + END_NANOS;
    try (CudaEvent last = toHost.record();
        CudaEvent lastBack = toDevice.record()) {
      return last.awaitReached(until) && lastBack.awaitReached(until);
    } catch (BackendException e) {
      return false;
    }
  }

  /** Gives the streams and the memory back, unless they do not end. */
  void close() {
    if (awaitIdle()) {
      end(true);
      device.reserve().give(toHost);
      device.reserve().give(toDevice);
    }
  }
}
