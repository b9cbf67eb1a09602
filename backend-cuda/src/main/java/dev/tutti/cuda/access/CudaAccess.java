package dev.tutti.cuda.access;

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
import dev.tutti.spi.Time;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Access to what {@link Cuda}, its devices, streams, and events hide from users. {@link Cuda}
 * provides it before any of those objects exists. All methods may be called from any thread.
 */
public abstract class CudaAccess {
  private static volatile @Nullable CudaAccess provided;

  /**
   * Provides the access; called by {@link Cuda}.
   *
   * @param access the access, kept for good
   */
  public static void provide(CudaAccess access) {
    provided = access;
  }

  /**
   * Returns the access.
   *
   * @throws IllegalStateException if {@link Cuda} is not loaded yet
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

  /** A holder of the access from its first use on, as a constant that the compiler can fold. */
  private static final class Holder {
    private static final CudaAccess ACCESS = provided();
  }

  /** Returns the driver. */
  public abstract CudaDriver driver(Cuda cuda);

  /** Returns lines that describe the driver, the devices, and the links between them. */
  public abstract List<String> findings(Cuda cuda);

  /**
   * Returns the links of a device in the format of {@link dev.tutti.cuda.driver.LinkMatrix#write}.
   */
  public abstract String links(Cuda cuda, int device);

  /**
   * Returns the actions that give up everything that is shared with other processes and still open.
   */
  public abstract List<Runnable> sharing(Cuda cuda);

  /** Returns the stream blocks that are open. */
  public abstract OpenBlocks openBlocks(Cuda cuda);

  /** Returns the allocator of the device's memory. */
  public abstract DeviceAllocator allocator(CudaDevice device);

  /** Returns the context that all libraries in the process share. */
  public abstract DeviceContext context(CudaDevice device);

  /** Returns the pool of driver events. */
  public abstract EventPool events(CudaDevice device);

  /** Returns the module's kernels on the device. */
  public abstract DeviceKernels kernels(CudaDevice device);

  /** Returns the driver to which the device belongs. */
  public abstract Cuda owner(CudaDevice device);

  /** Returns the allocator of pinned host memory. */
  public abstract PinnedAllocator pinned(CudaDevice device);

  /** Returns the reserve of streams that have one user each. */
  public abstract StreamReserve reserve(CudaDevice device);

  /** Returns the allocator of memory that other processes can open. */
  public abstract DeviceAllocator sharable(CudaDevice device);

  /**
   * Waits until all streams of the process are done, and returns whether they are by the deadline,
   * which is in terms of the time that is given.
   */
  public abstract boolean awaitAll(CudaDevice device, Time time, long deadlineNanos);

  /** Returns whether an event was already seen to be reached, without querying the device. */
  public abstract boolean isKnownReached(CudaEvent event);

  /** Returns whether {@code OpenEvents} holds an event. */
  public abstract boolean isListed(CudaEvent event);

  /** Returns the stream that an event marks permanently, or null. */
  public abstract @Nullable CudaStream stream(CudaEvent event);

  /** Returns the representation of a stream that allocators use. */
  public abstract BlockStream forBlocks(CudaStream stream);

  /** Waits until all work enqueued so far is done, and returns whether it is by the deadline. */
  public abstract boolean awaitIdle(CudaStream stream, long deadlineNanos);

  /** Records whether {@code OpenEvents} holds an event. */
  public abstract void setListed(CudaEvent event, boolean listed);

  /**
   * Marks the current end of a stream's work, given the stream's handle, and enters the device's
   * context.
   */
  public abstract void recordIn(CudaEvent event, long stream);

  /**
   * Treats an event as reached without querying it, because a later point on the device has been
   * reached.
   */
  public abstract void takeForReached(CudaEvent event);

  /**
   * Copies between two addresses on the device, whose context must be current on the calling
   * thread.
   */
  public abstract void copy(CudaStream stream, long to, long from, long bytes);

  /** Creates an event that marks no point yet. */
  public abstract CudaEvent event(CudaDevice device);

  /** Creates a stream for a handle; a stream of another library is foreign. */
  public abstract CudaStream stream(CudaDevice device, long handle, boolean isForeign);
}
