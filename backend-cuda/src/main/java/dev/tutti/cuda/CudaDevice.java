package dev.tutti.cuda;

import dev.tutti.Device;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.access.DeviceKernels;
import dev.tutti.cuda.access.KernelLoader;
import dev.tutti.cuda.access.StreamReserve;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.PinnedAllocator;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One GPU, by the context that all libraries of the process share. Any thread may call any method.
 */
public final class CudaDevice {
  /** The number of streams that {@link #poolStream} hands out in turn. */
  public static final int POOL_STREAMS = 32;

  /** The streams for groups before more are made: those of 8 ranks' messages, and 9 more. */
  static final int RESERVED_STREAMS = 24;

  private static final long POLL_NANOS = 1_000_000;

  private final Cuda owner;
  private final int index;
  private final DeviceContext context;
  private final EventPool events;
  private final DeviceAllocator allocator;
  private final DeviceAllocator sharable;
  private final PinnedAllocator pinned;
  private final DeviceKernels kernels;
  private final CudaTensors tensors;
  private final StreamReserve reserve;
  private final CudaStream defaultStream;
  private final @Nullable CudaStream[] pool = new @Nullable CudaStream[POOL_STREAMS];
  private final AtomicInteger nextOfPool = new AtomicInteger();

  CudaDevice(Cuda owner, int index, KernelLoader loader) {
    this.owner = owner;
    this.index = index;
    this.context = new DeviceContext(owner.driver(), index);
    this.events = new EventPool(owner.driver().events());
    BooleanSupplier mayWait = () -> owner.openBlocks().count() == 0;
    this.allocator = new DeviceAllocator(context, mayWait);
    this.sharable = DeviceAllocator.ofPlainSegments(context, mayWait);
    this.pinned = new PinnedAllocator(context, events, mayWait);
    this.kernels = new DeviceKernels(context, loader);
    this.defaultStream = new CudaStream(this, StreamCalls.DEFAULT, false);
    this.tensors = new CudaTensors(this);
    this.reserve = new StreamReserve(this);
    makeStreams();
  }

  /** Makes all streams now: to make many waits for the kernels that run then, even for ever. */
  private void makeStreams() {
    context.enter();
    StreamCalls streams = owner.driver().streams();
    for (int i = 0; i < POOL_STREAMS; i++) {
      pool[i] = new CudaStream(this, streams.create(streams.highestPriority()), false);
    }
    reserve.ensure(RESERVED_STREAMS);
  }

  /** Returns the ordinal among the devices that this process may use. */
  public int index() {
    return index;
  }

  /** Returns the name that tensors have for it. */
  public Device device() {
    return Device.cuda(index);
  }

  /** Returns what the card is called. */
  public String name() {
    return owner.driver().devices().name(index);
  }

  /** Returns the compute capability: 10 x major + minor, such as 90. */
  public int computeCapability() {
    return 10 * owner.driver().devices().attribute(index, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR)
        + owner.driver().devices().attribute(index, DeviceAttribute.COMPUTE_CAPABILITY_MINOR);
  }

  /** Returns the stream that every context has. */
  public CudaStream defaultStream() {
    return defaultStream;
  }

  /** Returns the calling thread's current stream of this device. */
  public CudaStream currentStream() {
    return owner.currentStreams().of(this);
  }

  /**
   * Returns one of {@value #POOL_STREAMS} streams of the highest priority, each in its turn. They
   * stay, and who asks for more than there are shares one with somebody else.
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
   * Takes a stream of another library. It has to outlive the tensors that are made while it is
   * current, or that {@link CudaTensors#useOn} names it for, since they ask it when they are freed;
   * after that it may be destroyed. Where one of them is freed while the stream is being recorded
   * into a graph, call {@link #unwrap} before.
   *
   * @param handle a {@code CUstream} or {@code cudaStream_t} of this device
   */
  public CudaStream wrap(long handle) {
    return handle == StreamCalls.DEFAULT ? defaultStream : new CudaStream(this, handle, true);
  }

  /**
   * Says that a stream of another library is about to be destroyed, so that it is not asked any
   * more: a recording puts off what a freed tensor asks it.
   *
   * @param handle as {@link #wrap} got it; no tensor in use needs the stream
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public void unwrap(long handle) {
    owner.leave(wrap(handle).forBlocks());
  }

  /** Returns what makes and copies tensors of this device. */
  public CudaTensors tensors() {
    return tensors;
  }

  Cuda owner() {
    return owner;
  }

  DeviceContext context() {
    return context;
  }

  EventPool events() {
    return events;
  }

  DeviceAllocator allocator() {
    return allocator;
  }

  /** Returns what allocates memory that other processes can open. */
  DeviceAllocator sharable() {
    return sharable;
  }

  PinnedAllocator pinned() {
    return pinned;
  }

  StreamReserve reserve() {
    return reserve;
  }

  DeviceKernels kernels() {
    return kernels;
  }

  /**
   * Waits for all that any stream of the process has now, and before for the end of recordings that
   * are known here, as the driver does not let them go on.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return false if it is not done by then, or the driver cannot tell
   */
  boolean awaitAll(long deadlineNanos) {
    if (!WaitStrategy.until(() -> !isRecording(), deadlineNanos, POLL_NANOS)) {
      return false;
    }
    FutureTask<?> wait =
        new FutureTask<>(
            () ->
                context.callRelaxed(
                    () -> {
                      owner.driver().contexts().synchronize();
                      return null;
                    }));
    Thread _ = Thread.ofPlatform().daemon().name("tutti-cuda-idle-" + index).start(wait);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          wait.get(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
          return true;
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (ExecutionException | TimeoutException e) {
          return false;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
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

  /** Frees everything; waits until the device is idle. */
  void close() {
    context.enter();
    owner.driver().contexts().synchronize();
    pinned.close();
    allocator.close();
    sharable.close();
    kernels.close();
    // Before the streams: what is freed from now on cannot be marked in one that is gone.
    events.close();
    reserve.close();
    synchronized (pool) {
      for (int i = 0; i < POOL_STREAMS; i++) {
        CudaStream stream = pool[i];
        if (stream != null) {
          owner.driver().streams().destroy(stream.handle());
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
