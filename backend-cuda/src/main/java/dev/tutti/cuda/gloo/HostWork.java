package dev.tutti.cuda.gloo;

import dev.tutti.BackendException;
import dev.tutti.Tensor;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.collective.OpenEvents;
import dev.tutti.cuda.collective.SparseReduction;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.spi.Backend;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Copies of one device's tensors to the host and back for the operations of a group, one operation
 * after another, on two streams of its own: one for each direction, because the device has a copy
 * engine for each.
 */
final class HostWork {
  /*
   * An operation is ordered after the work that was in the caller's stream at the call. Copies to
   * the host need this because they read what was computed there; copies to the device need it
   * because work there may still read what they overwrite. The host is done with an operation once
   * the copies of its results are enqueued in their stream; an event after them shows when the
   * device is done. The next operation may read those results or overwrite them, so its copies in
   * both directions are ordered after that event.
   */
  private static final long SPIN_NANOS = 200_000;
  private static final long PARK_NANOS = 20_000;

  /** The longest that closing a group waits for the device. */
  static final long END_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final CudaDevice device;
  private final int rank;
  private final BooleanSupplier isAborted;
  private final PinnedAllocator pinned;
  private final StreamCalls calls;
  private final CudaStream toHost;
  private final CudaStream toDevice;
  private @Nullable CudaStream copies;
  private final List<HostPart> parts = Collections.synchronizedList(new ArrayList<>());
  private final OpenEvents events = new OpenEvents();
  private @Nullable CudaEvent results;

  HostWork(CudaDevice device, int rank, BooleanSupplier isAborted) {
    this.device = device;
    this.rank = rank;
    this.isAborted = isAborted;
    this.pinned = Parts.of(device).pinned();
    this.calls = Parts.of(device).context().driver().streams();
    this.toHost = Parts.of(device).takeStream();
    this.toDevice = Parts.of(device).takeStream();
  }

  /**
   * Marks the current end of the work in the calling thread's stream.
   *
   * @throws UnsupportedOperationException if the stream is being captured into a graph
   */
  static CudaEvent mark(CudaDevice device) {
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          "an operation of a Gloo group cannot be captured into a graph because it runs on the"
              + " host");
    }
    return stream.record();
  }

  /** Returns the device. */
  CudaDevice device() {
    return device;
  }

  /** Returns a stream for copies within the device, which nothing else uses. */
  CudaStream copies() {
    CudaStream own = copies;
    if (own == null) {
      own = Parts.of(device).takeStream();
      copies = own;
    }
    return own;
  }

  /** Begins an operation after its caller's work. */
  void begin(Operation op) {
    begin(
        op,
        device,
        event -> {
          toHost.waitFor(event);
          toDevice.waitFor(event);
        });
    order(toHost);
    order(toDevice);
  }

  /** Orders later work in a stream of the device after the results of all operations. */
  void order(CudaStream stream) {
    CudaEvent before = results;
    if (before != null) {
      stream.waitFor(before);
    }
  }

  /**
   * Orders work after the work of an operation's caller.
   *
   * @param op the operation
   * @param device the device of the operation's tensors
   * @param order orders the work after an event
   */
  static void begin(Operation op, CudaDevice device, Consumer<CudaEvent> order) {
    Parts.of(device).context().enter();
    DeviceEvent known = op.callerEvent();
    if (known instanceof CudaEvent event && event.device().equals(device)) {
      order.accept(event);
    } else {
      try (CudaEvent event = mark(device)) {
        order.accept(event);
      }
    }
  }

  /** Adds a tensor that the operation reads. */
  HostPart input(Tensor tensor) {
    return take(tensor, true, false);
  }

  /** Adds a tensor that the operation writes. */
  HostPart output(Tensor tensor) {
    return take(tensor, false, true);
  }

  private HostPart take(Tensor tensor, boolean isRead, boolean isResult) {
    List<Tensor> single = List.of(tensor);
    try {
      requireUsable(single);
      return begin(parts, DeviceRows.ofAll(single), 0, tensor.numel(), isRead, isResult);
    } catch (RuntimeException | Error e) {
      // The operation has not begun, so nothing else ends it.
      end(false);
      throw e;
    }
  }

  /** Requires that tensors are alive and on the device. */
  void requireUsable(List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
      if (tensor.device().index() != device.index() || !tensor.segment().scope().isAlive()) {
        throw new UnsupportedOperationException(
            ("rank %s: the memory of all tensors of an operation must not be freed, and must be on"
                    + " %s like that of the first tensor, not %s")
                .formatted(rank, device, tensor.describe()));
      }
    }
  }

  /**
   * Adds a part to a collection, and begins to copy it to the host if it is read; if that fails,
   * the part is left to the code that ends the collection's parts.
   *
   * @param to the collection to which the part is added
   * @param rows the rows on the device
   * @param from the first element within each row
   * @param length the number of elements in each row
   * @param isRead whether the part is copied to the host
   * @param isResult whether the part is copied back to the device
   */
  HostPart begin(
      Collection<HostPart> to,
      DeviceRows rows,
      long from,
      long length,
      boolean isRead,
      boolean isResult) {
    long bytes = HostPart.bytes(rows, length);
    PinnedBlock block = bytes == 0 ? null : pinned.allocate(bytes);
    HostPart part = new HostPart(rows, from, length, block, isRead, isResult);
    to.add(part);
    if (isRead && block != null) {
      Parts.of(device).context().enter();
      part.forEach(
          (address, offset, pieceBytes) -> {
            calls.copy(block.address() + offset, address, pieceBytes, toHost.handle());
            part.isLost = true;
          });
      pinned.useOn(block, toHost.handle());
      part.isLost = false;
    }
    return part;
  }

  /** Waits until everything that the operation reads is on the host. */
  void awaitInputs(Operation op) throws Exception {
    for (HostPart part : parts) {
      if (part.isRead) {
        await(op, part);
      }
    }
  }

  /** Enqueues the copies of all results into their stream. */
  void copyBack() {
    parts.forEach(this::copyBack);
  }

  /** Enqueues the copy of a part into its stream, if the part is a result. */
  void copyBack(HostPart part) {
    PinnedBlock block = part.block();
    if (part.isResult && block != null) {
      Parts.of(device).context().enter();
      part.forEach(
          (address, offset, bytes) -> {
            calls.copy(address, block.address() + offset, bytes, toDevice.handle());
            part.isLost = true;
          });
      pinned.useOn(block, toDevice.handle());
      part.isLost = false;
    }
  }

  /**
   * Copies a host tensor to a new tensor on the device, and waits for the copy.
   *
   * @throws TimeoutException if the operation's deadline passes first
   */
  Tensor copyOf(Operation op, Tensor host) throws TimeoutException {
    try (CudaStream.Scope _ = toDevice.use()) {
      Tensor copy = device.tensors().copyOf(host);
      try (CudaEvent event = toDevice.record()) {
        if (!event.awaitReached(op.deadlineNanos())) {
          throw new TimeoutException(
              "rank " + rank + ": " + device + " did not finish a copy in time");
        }
      }
      keepForCaller(op, device, copy);
      return copy;
    }
  }

  /** Makes a result that the caller frees wait for the stream of the call, which reads it. */
  static void keepForCaller(Operation op, CudaDevice device, Tensor result) {
    if (result.isSparse()) {
      keepForCaller(op, device, result.indices());
      keepForCaller(op, device, result.values());
    } else if (op.callerEvent() instanceof CudaEvent event
        && event.device().equals(device)
        && result.numel() > 0) {
      BlockStream stream = Parts.of(event).stream();
      if (stream != null) {
        Parts.of(device).allocator().keepFor(result.segment().address(), stream);
      }
    }
  }

  /**
   * Sums sparse tensors on the device.
   *
   * @param others exchanges the tensors between all ranks; null to coalesce only this rank's
   * @param arena the arena that owns the memory of the sum
   * @throws UnsupportedOperationException if the tensor is not usable, or cannot be summed
   */
  Tensor sum(Operation op, Tensor sparse, int size, @Nullable Backend others, Arena arena)
      throws Exception {
    List<Tensor> read = List.of(sparse.indices(), sparse.values());
    requireUsable(read);
    boolean good = false;
    try (CudaStream.Scope _ = toHost.use()) {
      SparseReduction sums = new SparseReduction(device, rank, size, others, isAborted);
      Tensor sum = sums.sum(op, sparse, arena);
      good = true;
      return sum;
    } finally {
      if (!good && !toHost.isIdle()) {
        // Work that finishes late still reads the caller's memory, which may be freed now.
        read.forEach(tensor -> keep(tensor.segment().address()));
      }
    }
  }

  /**
   * Notifies an operation that has results that the copies of all of them are enqueued in their
   * stream.
   */
  void enqueued(Operation op) {
    List<Tensor> written = new ArrayList<>();
    parts.stream().filter(part -> part.isResult).forEach(part -> written.addAll(part.tensors()));
    enqueued(op, written);
  }

  /**
   * Notifies an operation that has results that the copies of all of them are enqueued in their
   * stream.
   *
   * @param op the operation
   * @param written the tensors that it writes on the device
   */
  void enqueued(Operation op, List<Tensor> written) {
    if (written.isEmpty()) {
      return;
    }
    for (Tensor result : written) {
      // The caller may free it once the host is done.
      toDevice.keep(result);
    }
    enqueued(op, toDevice);
  }

  /**
   * Notifies an operation that the copies of all its results are enqueued in a stream, and records
   * this for the next operation.
   */
  void enqueued(Operation op, CudaStream stream) {
    CudaEvent event = stream.record();
    events.add(event);
    results = event;
    op.enqueued(event);
  }

  /** Waits until the last copy of a part has finished. */
  void await(Operation op, HostPart part) throws Exception {
    PinnedBlock block = part.block();
    if (block == null || pinned.isIdle(block)) {
      return;
    }
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS, Time.SYSTEM);
    while (!pinned.isIdle(block)) {
      op.throwIfFailed();
      if (isAborted.getAsBoolean()) {
        throw new BackendException("the group was aborted");
      }
      if (wait.now() - op.deadlineNanos() >= 0) {
        throw new TimeoutException(
            "rank " + rank + ": " + device + " did not finish copying the tensor in time");
      }
      wait.rest();
    }
  }

  /** Frees the memory of a part; its next user waits for all copies that are known. */
  void free(HostPart part) {
    PinnedBlock block = part.block();
    if (block != null) {
      pinned.free(block);
    }
  }

  /** Adopts parts that were begun elsewhere, and ends them together with the others. */
  void end(boolean good, Collection<HostPart> one, Collection<HostPart> other) {
    parts.addAll(one);
    parts.addAll(other);
    end(good);
  }

  /**
   * Frees the memory; after a failure, only once none of it is being copied anymore. Close may call
   * this concurrently.
   */
  void end(boolean good) {
    boolean idle = good || awaitIdle();
    List<HostPart> own;
    synchronized (parts) {
      own = List.copyOf(parts);
      parts.clear();
    }
    for (HostPart part : own) {
      if (!idle) {
        part.forEach((address, _, _) -> keep(address));
      }
      if (idle || !part.isLost) {
        free(part);
      }
    }
  }

  /** Makes the next users of device memory wait for copies that finish late. */
  private void keep(long address) {
    Parts.of(device).allocator().keepFor(address, Parts.of(toHost), Parts.of(toDevice));
    Parts.of(device).sharable().keepFor(address, Parts.of(toHost), Parts.of(toDevice));
  }

  private boolean awaitIdle() {
    long until = System.nanoTime() + END_NANOS;
    CudaStream own = copies;
    return awaitIdle(toHost, until)
        && awaitIdle(toDevice, until)
        && (own == null || awaitIdle(own, until));
  }

  /** Frees the streams and the memory, unless the streams do not become idle. */
  void close() {
    if (awaitIdle()) {
      end(true);
      events.close();
      Parts.of(device).giveStream(toHost);
      Parts.of(device).giveStream(toDevice);
      CudaStream own = copies;
      if (own != null) {
        Parts.of(device).giveStream(own);
      }
    }
  }

  /**
   * Waits until all work enqueued in a stream so far is done; returns false if it is not done by
   * the deadline, or the device failed.
   */
  static boolean awaitIdle(CudaStream stream, long deadlineNanos) {
    try (CudaEvent event = stream.record()) {
      return event.awaitReached(deadlineNanos);
    } catch (BackendException e) {
      return false;
    }
  }
}
