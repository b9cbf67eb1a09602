package dev.tutti.cuda.access;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.block.OpenBlocks;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.PinnedAllocator;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reaches what {@link Cuda}, its devices, streams and events keep from users. {@link Cuda} provides
 * it before there is any of them. Any thread may call any method.
 */
public abstract class CudaAccess {
  private static volatile @Nullable CudaAccess provided;

  /**
   * Provides the access; {@link Cuda} calls it.
   *
   * @param access the access, for good
   */
  public static void provide(CudaAccess access) {
    provided = access;
  }

  /**
   * Returns the access.
   *
   * @throws IllegalStateException before {@link Cuda} is loaded
   */
  public static CudaAccess access() {
    return Holder.ACCESS;
  }

  private static CudaAccess provided() {
    CudaAccess access = provided;
    if (access == null) {
      throw new IllegalStateException("Cuda is not loaded");
    }
    return access;
  }

  /** Holds the access from its first use on, as a constant to the compiler. */
  private static final class Holder {
    private static final CudaAccess ACCESS = provided();
  }

  /** Returns the driver. */
  public abstract CudaDriver driver(Cuda cuda);

  /** Returns lines that describe the driver, the devices and the links between them. */
  public abstract List<String> findings(Cuda cuda);

  /**
   * Returns the links of a device, as {@link dev.tutti.cuda.driver.LinkMatrix#write} writes them.
   */
  public abstract String links(Cuda cuda, int device);

  /** Returns the stream blocks that are open. */
  public abstract OpenBlocks openBlocks(Cuda cuda);

  /** Returns what allocates the device's memory. */
  public abstract DeviceAllocator allocator(CudaDevice device);

  /** Returns the context that all libraries of the process share. */
  public abstract DeviceContext context(CudaDevice device);

  /** Returns the pool of the driver's events. */
  public abstract EventPool events(CudaDevice device);

  /** Returns the module's kernels on the device. */
  public abstract DeviceKernels kernels(CudaDevice device);

  /** Returns the driver that the device is of. */
  public abstract Cuda owner(CudaDevice device);

  /** Returns what allocates pinned memory of the host. */
  public abstract PinnedAllocator pinned(CudaDevice device);

  /** Returns the streams that have one user each. */
  public abstract StreamReserve reserve(CudaDevice device);

  /** Returns what allocates memory that other processes can open. */
  public abstract DeviceAllocator sharable(CudaDevice device);

  /** Returns whether all streams of the process are done by a deadline; waits for that. */
  public abstract boolean awaitAll(CudaDevice device, long deadlineNanos);

  /** Returns whether somebody saw an event reached, without a look at the device. */
  public abstract boolean isKnownReached(CudaEvent event);

  /** Returns whether {@code OpenEvents} has an event. */
  public abstract boolean isListed(CudaEvent event);

  /** Returns the stream that an event marks for good, or null. */
  public abstract @Nullable CudaStream stream(CudaEvent event);

  /** Returns what allocators know a stream by. */
  public abstract BlockStream forBlocks(CudaStream stream);

  /** Returns whether all work so far is done by a deadline; waits for that. */
  public abstract boolean awaitIdle(CudaStream stream, long deadlineNanos);

  /** Says whether {@code OpenEvents} has an event. */
  public abstract void setListed(CudaEvent event, boolean listed);

  /** Marks where a stream is now, by its handle; the device's context is current. */
  public abstract void recordIn(CudaEvent event, long stream);

  /** Takes an event for reached without a look, as a later point of the device is. */
  public abstract void takeForReached(CudaEvent event);

  /** Copies between addresses of the device, whose context is the calling thread's. */
  public abstract void copy(CudaStream stream, long to, long from, long bytes);

  /** Creates an event that marks nothing yet. */
  public abstract CudaEvent event(CudaDevice device);

  /** Creates the stream of a handle; another library's is foreign. */
  public abstract CudaStream stream(CudaDevice device, long handle, boolean isForeign);

  /** Returns a tensor of memory of a device. */
  public abstract Tensor view(CudaDevice device, MemorySegment segment, DType dtype, long... shape);
}
