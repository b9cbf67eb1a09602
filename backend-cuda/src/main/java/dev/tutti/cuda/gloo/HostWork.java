package dev.tutti.cuda.gloo;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.BackendException;
import dev.tutti.Tensor;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.OpenEvents;
import dev.tutti.cuda.collective.SparseReduction;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.spi.Backend;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
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
 * Brings tensors of one device to the host and back for the operations of a group, one after the
 * other, on two streams of its own: one for each direction, as the device has a copy engine for
 * each.
 */
final class HostWork {
  /*
   * An operation begins behind what the caller's stream had at the call. Copies to the host need that
   * since they read what was computed there, copies to the device since something there may still
   * read what they write. The host is done with an operation when the copies of its results are in
   * their stream; an event behind them says when the device is. The next operation may read those
   * results, so its copies to the host begin behind that stream.
   */
  private static final long SPIN_NANOS = 200_000;
  private static final long PARK_NANOS = 20_000;

  /** How long the end of a group waits for the device. */
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
    this.pinned = access().pinned(device);
    this.calls = access().context(device).driver().streams();
    this.toHost = access().reserve(device).take();
    this.toDevice = access().reserve(device).take();
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

  /** Returns the device. */
  CudaDevice device() {
    return device;
  }

  /** Returns the stream for copies on the device, which nobody else uses. */
  CudaStream copies() {
    CudaStream own = copies;
    if (own == null) {
      own = access().reserve(device).take();
      copies = own;
    }
    return own;
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
    order(toHost);
  }

  /** Orders what comes later in a stream of the device behind the results of all operations. */
  void order(CudaStream stream) {
    CudaEvent before = results;
    if (before != null) {
      stream.waitFor(before);
    }
  }

  /**
   * Orders something behind the work of an operation's caller.
   *
   * @param op the operation
   * @param device of its tensors
   * @param order orders it behind an event
   */
  static void begin(Operation op, CudaDevice device, Consumer<CudaEvent> order) {
    access().context(device).enter();
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
  HostPart input(Tensor tensor) {
    return take(tensor, true, false);
  }

  /** Takes a tensor that the operation writes. */
  HostPart output(Tensor tensor) {
    return take(tensor, false, true);
  }

  private HostPart take(Tensor tensor, boolean isRead, boolean isResult) {
    boolean good = false;
    try {
      requireUsable(List.of(tensor));
      HostPart part =
          begin(parts, DeviceRows.ofAll(List.of(tensor)), 0, tensor.numel(), isRead, isResult);
      good = true;
      return part;
    } finally {
      if (!good) {
        // The operation has not begun, so nobody else ends it.
        end(false);
      }
    }
  }

  /** Requires that tensors are there, and on the device. */
  void requireUsable(List<Tensor> tensors) {
    for (Tensor tensor : tensors) {
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
  }

  /**
   * Adds a part to some, and begins to copy it to the host if that reads it; what fails from there
   * on leaves it to who ends those.
   *
   * @param to takes it
   * @param rows of the device
   * @param from the first element of each row
   * @param length elements of each row
   * @param isRead whether the host gets it
   * @param isResult whether the device gets it back
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
      access().context(device).enter();
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

  /** Waits until all that the operation reads is on the host. */
  void awaitInputs(Operation op) throws Exception {
    for (HostPart part : parts) {
      if (part.isRead) {
        await(op, part);
      }
    }
  }

  /** Puts the copies of all results into their stream. */
  void copyBack() {
    parts.forEach(this::copyBack);
  }

  /** Puts the copy of a part into its stream, if it is a result. */
  void copyBack(HostPart part) {
    PinnedBlock block = part.block();
    if (part.isResult && block != null) {
      access().context(device).enter();
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
        && result.numel() > 0) {
      CudaStream stream = access().stream(event);
      if (stream != null) {
        device.tensors().useOn(result, stream);
      }
    }
  }

  /**
   * Sums sparse tensors on the device.
   *
   * @param others brings them to all ranks; null to coalesce this rank's alone
   * @param arena owns the memory of the sum
   * @throws UnsupportedOperationException if the tensor is not there, or cannot be summed
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
        // What runs late still reads the caller's memory, which the caller may free now.
        read.forEach(tensor -> keep(tensor.segment().address()));
      }
    }
  }

  /** Tells an operation, if it has results, that the copies of all of them are in their stream. */
  void enqueued(Operation op) {
    List<Tensor> written = new ArrayList<>();
    parts.stream().filter(part -> part.isResult).forEach(part -> written.addAll(part.tensors()));
    enqueued(op, written);
  }

  /**
   * Tells an operation, if it has results, that the copies of all of them are in their stream.
   *
   * @param op the operation
   * @param written what it writes on the device
   */
  void enqueued(Operation op, List<Tensor> written) {
    if (written.isEmpty()) {
      return;
    }
    for (Tensor result : written) {
      // The caller may free it when the host is done.
      long address = result.segment().address();
      access().allocator(device).keepFor(address, access().forBlocks(toDevice));
      access().sharable(device).keepFor(address, access().forBlocks(toDevice));
    }
    enqueued(op, toDevice);
  }

  /** Tells an operation that the copies of all its results are in a stream, for the next to see. */
  void enqueued(Operation op, CudaStream stream) {
    CudaEvent event = stream.record();
    events.add(event);
    results = event;
    op.enqueued(event);
  }

  /** Waits until a part is where it was last copied to. */
  void await(Operation op, HostPart part) throws Exception {
    PinnedBlock block = part.block();
    if (block == null || pinned.isIdle(block)) {
      return;
    }
    WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS);
    while (!pinned.isIdle(block)) {
      op.throwIfFailed();
      if (isAborted.getAsBoolean()) {
        throw new BackendException("the group was aborted");
      }
      if (wait.now() - op.deadlineNanos() >= 0) {
        throw new TimeoutException(
            "rank " + rank + ": " + device + " did not copy the tensor in time");
      }
      wait.rest();
    }
  }

  /** Gives the memory of a part back; who gets it next waits for copies that are known. */
  void free(HostPart part) {
    PinnedBlock block = part.block();
    if (block != null) {
      pinned.free(block);
    }
  }

  /** Takes parts that were begun elsewhere, and ends them with the others. */
  void end(boolean good, Collection<HostPart> one, Collection<HostPart> other) {
    parts.addAll(one);
    parts.addAll(other);
    end(good);
  }

  /**
   * Gives the memory back; after a failure only once nothing of it is copied any more. Close may
   * call it meanwhile.
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

  /** Lets the next users of memory of the device wait for what is copied late. */
  private void keep(long address) {
    access()
        .allocator(device)
        .keepFor(address, access().forBlocks(toHost), access().forBlocks(toDevice));
    access()
        .sharable(device)
        .keepFor(address, access().forBlocks(toHost), access().forBlocks(toDevice));
  }

  private boolean awaitIdle() {
    long until = System.nanoTime() + END_NANOS;
    CudaStream own = copies;
    return access().awaitIdle(toHost, until)
        && access().awaitIdle(toDevice, until)
        && (own == null || access().awaitIdle(own, until));
  }

  /** Gives the streams and the memory back, unless they do not end. */
  void close() {
    if (awaitIdle()) {
      end(true);
      events.close();
      access().reserve(device).give(toHost);
      access().reserve(device).give(toDevice);
      CudaStream own = copies;
      if (own != null) {
        access().reserve(device).give(own);
      }
    }
  }
}
