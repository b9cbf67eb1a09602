package dev.tutti.cuda;

import dev.tutti.Device;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.access.DeviceParts;
import dev.tutti.cuda.access.DriverParts;
import dev.tutti.cuda.access.Facade;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.access.StreamReserve;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.spi.Time;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One GPU, used through the primary context that all libraries in the process share. All methods
 * may be called from any thread.
 */
public final class CudaDevice extends Facade<DeviceParts> {
  /** The number of streams that {@link #poolStream} hands out in turn. */
  public static final int POOL_STREAMS = 32;

  private static final long POLL_NANOS = 1_000_000;

  private final CudaDriver driver;
  private final CurrentStreams currentStreams;
  private final Consumer<BlockStream> leave;
  private final int index;
  private final DeviceContext context;
  private final CudaTensors tensors;
  private final CudaStream defaultStream;
  private final @Nullable CudaStream[] pool = new @Nullable CudaStream[POOL_STREAMS];
  private final AtomicInteger nextOfPool = new AtomicInteger();

  /**
   * Creates a device.
   *
   * @param parts the parts of its driver
   * @param currentStreams the current streams of all threads
   * @param leave makes all devices forget a stream
   * @param index the ordinal
   * @param image supplies the module's kernels
   */
  CudaDevice(
      DriverParts parts,
      CurrentStreams currentStreams,
      Consumer<BlockStream> leave,
      int index,
      Supplier<byte[]> image) {
    super(new DeviceParts(new DeviceContext(parts.driver(), index), parts.openBlocks(), image));
    this.driver = parts.driver();
    this.currentStreams = currentStreams;
    this.leave = leave;
    this.index = index;
    this.context = Parts.of(this).context();
    Parts.of(this).attach(new Hidden());
    this.defaultStream = new CudaStream(this, StreamCalls.DEFAULT, false);
    this.tensors = new CudaTensors(this);
    makeStreams();
  }

  /** What the module does with a device, but not users. */
  private final class Hidden implements DeviceParts.Owner {
    @Override
    public CudaStream stream(long handle) {
      return new CudaStream(CudaDevice.this, handle, false);
    }

    @Override
    public CudaEvent event() {
      return new CudaEvent(CudaDevice.this, null, 0);
    }

    @Override
    public boolean awaitAll(Time time, long deadlineNanos) {
      return CudaDevice.this.awaitAll(time, deadlineNanos);
    }
  }

  /**
   * Makes all streams up front: creating a stream later may wait for the kernels that are running
   * then, possibly forever.
   */
  private void makeStreams() {
    context.enter();
    StreamCalls streams = driver.streams();
    for (int i = 0; i < POOL_STREAMS; i++) {
      pool[i] = new CudaStream(this, streams.create(streams.highestPriority()), false);
    }
    Parts.of(this).reserve().ensure(StreamReserve.FIRST);
  }

  /** Returns this device's ordinal among the devices that this process may use. */
  public int index() {
    return index;
  }

  /** Returns the name by which tensors refer to this device. */
  public Device device() {
    return Device.cuda(index);
  }

  /** Returns the product name of the card. */
  public String name() {
    return driver.devices().name(index);
  }

  /** Returns the compute capability: 10 * major + minor, for example 90. */
  public int computeCapability() {
    return 10 * driver.devices().attribute(index, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR)
        + driver.devices().attribute(index, DeviceAttribute.COMPUTE_CAPABILITY_MINOR);
  }

  /** Returns the default stream of this device's context. */
  public CudaStream defaultStream() {
    return defaultStream;
  }

  /** Returns the calling thread's current stream on this device. */
  public CudaStream currentStream() {
    return currentStreams.of(this);
  }

  /**
   * Returns one of {@value #POOL_STREAMS} highest-priority streams, in round-robin order. The
   * streams are never destroyed; callers that take more of them than there are share streams.
   */
  public CudaStream poolStream() {
    int place = Math.floorMod(nextOfPool.getAndIncrement(), POOL_STREAMS);
    synchronized (pool) {
      CudaStream stream = pool[place];
      if (stream == null) {
        throw new IllegalStateException("the driver was closed");
      }
      return stream;
    }
  }

  /**
   * Wraps a stream that another library created. The stream must outlive all tensors that are
   * allocated while it is current, and all tensors that {@link CudaTensors#useOn} associates with
   * it, because it is queried when they are freed; after that it may be destroyed. If one of those
   * tensors is freed while the stream is being captured into a graph, call {@link #unwrap} before
   * destroying the stream.
   *
   * @param handle a {@code CUstream} or {@code cudaStream_t} of this device
   */
  public CudaStream wrap(long handle) {
    return handle == StreamCalls.DEFAULT ? defaultStream : new CudaStream(this, handle, true);
  }

  /**
   * Declares that a stream of another library is about to be destroyed, so that it is no longer
   * queried: during graph capture, the query for a freed tensor is postponed.
   *
   * @param handle the handle that was passed to {@link #wrap}; no tensor in use may need the stream
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public void unwrap(long handle) {
    leave.accept(wrap(handle).forBlocks());
  }

  /** Returns the factory for tensors of this device, which also copies them. */
  public CudaTensors tensors() {
    return tensors;
  }

  CurrentStreams currentStreams() {
    return currentStreams;
  }

  DeviceContext context() {
    return context;
  }

  EventPool events() {
    return Parts.of(this).events();
  }

  DeviceAllocator allocator() {
    return Parts.of(this).allocator();
  }

  /** Returns the allocator of memory that other processes can open. */
  DeviceAllocator sharable() {
    return Parts.of(this).sharable();
  }

  PinnedAllocator pinned() {
    return Parts.of(this).pinned();
  }

  /**
   * Waits for all work that is now in any stream of the process; first waits until the graph
   * captures known here have ended, since the driver would invalidate them.
   *
   * @param time by which to wait
   * @param deadlineNanos the deadline, in terms of that time
   * @return false if the work is not done by the deadline, or if the driver does not say
   */
  boolean awaitAll(Time time, long deadlineNanos) {
    if (!WaitStrategy.until(() -> !isRecording(), deadlineNanos, POLL_NANOS, time)) {
      return false;
    }
    AtomicBoolean idle = new AtomicBoolean();
    Thread wait =
        time.start(
            "tutti-cuda-idle-" + index,
            () -> {
              try {
                context.callRelaxed(
                    () -> {
                      driver.contexts().synchronize();
                      return null;
                    });
                idle.set(true);
              } catch (RuntimeException _) {
                // The driver does not say.
              }
            });
    return Uninterrupted.await(
        () -> time.join(wait, Math.max(0, deadlineNanos - time.nanoTime())) && idle.get());
  }

  private boolean isRecording() {
    synchronized (pool) {
      for (CudaStream stream : pool) {
        if (stream != null && stream.isCapturing()) {
          return true;
        }
      }
      return false;
    }
  }

  /** Waits until the device is idle and frees everything. */
  void close() {
    context.enter();
    driver.contexts().synchronize();
    DeviceParts parts = Parts.of(this);
    parts.staleGraphs().close();
    parts.pinned().close();
    parts.allocator().close();
    parts.sharable().close();
    parts.kernels().close();
    // Before the streams: memory freed from now on cannot be marked in a destroyed stream.
    parts.events().close();
    parts.reserve().close();
    synchronized (pool) {
      for (int i = 0; i < POOL_STREAMS; i++) {
        CudaStream stream = pool[i];
        if (stream != null) {
          driver.streams().destroy(stream.handle());
          pool[i] = null;
        }
      }
    }
    context.close();
  }

  @Override
  public String toString() {
    return device().toString();
  }
}
