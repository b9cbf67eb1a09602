package dev.tutti.cuda.access;

import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The parts of a device. Any thread may call any method. */
public final class DeviceParts {
  private final DeviceContext context;
  private final OpenBlocks openBlocks;
  private final EventPool events;
  private final DeviceAllocator allocator;
  private final DeviceAllocator sharable;
  private final PinnedAllocator pinned;
  private final DeviceKernels kernels;
  private final StreamReserve reserve;
  private final StaleGraphs staleGraphs = new StaleGraphs();
  private final Multiprocessors multiprocessors;
  private final AtomicBoolean isCommunicating = new AtomicBoolean();
  private @Nullable Owner owner;

  /** What the device itself can do, but not for users. */
  public interface Owner {
    /** Creates a stream of this library for a handle. */
    CudaStream stream(long handle);

    /** Creates an event that marks no point yet. */
    CudaEvent event();

    /**
     * Waits until all streams of the process are done, and returns whether they are by the
     * deadline, which is in terms of the time that is given.
     */
    boolean awaitAll(Time time, long deadlineNanos);
  }

  /**
   * Creates the parts of a device; {@link #attach} must follow.
   *
   * @param openBlocks the stream blocks of the process, during which memory is not waited for
   * @param image supplies the module's kernels for all supported devices
   */
  public DeviceParts(DeviceContext context, OpenBlocks openBlocks, Supplier<byte[]> image) {
    this.context = context;
    this.openBlocks = openBlocks;
    this.events = new EventPool(context);
    this.reserve = new StreamReserve(context);
    BooleanSupplier mayWait = () -> openBlocks.count() == 0;
    this.allocator = new DeviceAllocator(context, mayWait);
    this.sharable = DeviceAllocator.ofPlainSegments(context, mayWait);
    this.pinned = new PinnedAllocator(context, events, mayWait);
    this.kernels = new DeviceKernels(context, image);
    this.multiprocessors = new Multiprocessors(context, events);
  }

  /** Gives the parts their device, once. */
  public void attach(Owner device) {
    owner = device;
  }

  /** Returns what the device itself can do. */
  public Owner owner() {
    Owner device = owner;
    if (device == null) {
      throw new IllegalStateException("the parts have no device yet");
    }
    return device;
  }

  /** Returns the context that all libraries in the process share. */
  public DeviceContext context() {
    return context;
  }

  /** Returns the stream blocks that are open, on any device. */
  public OpenBlocks openBlocks() {
    return openBlocks;
  }

  /** Returns the pool of driver events. */
  public EventPool events() {
    return events;
  }

  /** Returns the allocator of the device's memory. */
  public DeviceAllocator allocator() {
    return allocator;
  }

  /** Returns the allocator of memory that other processes can open. */
  public DeviceAllocator sharable() {
    return sharable;
  }

  /** Returns the allocator of pinned host memory. */
  public PinnedAllocator pinned() {
    return pinned;
  }

  /** Returns the module's kernels on the device. */
  public DeviceKernels kernels() {
    return kernels;
  }

  /** Returns the ledger of blocks that wait for other ranks. */
  public Multiprocessors multiprocessors() {
    return multiprocessors;
  }

  /** Returns the reserve of streams that have one user each. */
  public StreamReserve reserve() {
    return reserve;
  }

  /** Returns the graphs of groups that are closed. */
  public StaleGraphs staleGraphs() {
    return staleGraphs;
  }

  /** Returns a stream for exclusive use; it is not one of the device's pool. */
  public CudaStream takeStream() {
    return owner().stream(reserve.take());
  }

  /** Returns the given number of such streams, or takes none if it fails. */
  public List<CudaStream> takeStreams(int count) {
    List<CudaStream> taken = new ArrayList<>(count);
    try {
      while (taken.size() < count) {
        taken.add(takeStream());
      }
      return taken;
    } catch (RuntimeException e) {
      taken.forEach(this::giveStream);
      throw e;
    }
  }

  /**
   * Returns the stream for communication beside computation, of which there is one at a time; null
   * if another user has it.
   */
  public @Nullable CudaStream takeForCommunication() {
    if (!isCommunicating.compareAndSet(false, true)) {
      return null;
    }
    try {
      return takeStream();
    } catch (RuntimeException e) {
      isCommunicating.set(false);
      throw e;
    }
  }

  /** Takes back the stream for communication, in which no work runs. */
  public void giveFromCommunication(CudaStream stream) {
    giveStream(stream);
    isCommunicating.set(false);
  }

  /** Takes back a stream in which no work runs. */
  public void giveStream(CudaStream stream) {
    reserve.give(stream.handle());
  }
}
