package dev.tutti.cuda.memory;

import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A caching allocator of page-locked host memory for one device. A block may be freed while the
 * device still uses it: it then waits for the events of its uses before it is reused. Sizes are
 * powers of two; blocks of up to {@value #SLAB_LIMIT} bytes are cut from slabs. When the driver has
 * no more memory, larger unused blocks are first returned to it. All methods may be called from any
 * thread.
 */
public final class PinnedAllocator {
  /** The size of the smallest block: no two blocks share a cache line. */
  static final int LEAST_BYTES = 64;

  static final int SLAB_LIMIT = 4096;
  static final int SLAB_BYTES = 64 << 10;
  private static final int CLASSES = 41;
  private static final int COLLECTED_AT_ONCE = 2;

  /** The result that some drivers return when no more memory can be locked. */
  private static final int OPERATING_SYSTEM = 304;

  /**
   * The longest that an allocation waits for the device, which freeing memory in the driver waits
   * for.
   */
  private static final Duration RELEASE_WAIT = Duration.ofSeconds(1);

  private static final System.Logger LOG = System.getLogger(PinnedAllocator.class.getName());

  private final DeviceContext context;
  private final CudaDriver driver;
  private final EventPool events;
  private final BooleanSupplier mayWait;
  private final List<ArrayDeque<PinnedBlock>> free = new ArrayList<>();
  private final ArrayDeque<PinnedBlock> waiting = new ArrayDeque<>();
  private final List<PinnedBlock> all = new ArrayList<>();
  private final List<Long> allocations = new ArrayList<>();
  private long allocatedBytes;
  private int used;
  private @Nullable Thread releasing;
  private boolean closed;

  /**
   * Creates an empty allocator.
   *
   * @param context the device's context
   * @param events the device's event pool
   * @param mayWait whether the device becomes idle by itself; false while a stream block is open
   */
  public PinnedAllocator(DeviceContext context, EventPool events, BooleanSupplier mayWait) {
    this.context = context;
    this.driver = context.driver();
    this.events = events;
    this.mayWait = mayWait;
    for (int i = 0; i < CLASSES; i++) {
      free.add(new ArrayDeque<>());
    }
  }

  /**
   * Allocates uninitialized memory.
   *
   * @param bytes the minimum size
   */
  public PinnedBlock allocate(long bytes) {
    if (bytes < 1 || bytes > 1L << (CLASSES - 1)) {
      throw new IllegalArgumentException("cannot allocate " + bytes + " bytes of host memory");
    }
    int sizeClass = 64 - Long.numberOfLeadingZeros(Math.max(bytes, LEAST_BYTES) - 1);
    try {
      return take(sizeClass);
    } catch (CudaException e) {
      boolean isFull = e.isOutOfMemory() || e.code() == OPERATING_SYSTEM;
      if (!isFull || !releaseCached()) {
        throw e;
      }
      return take(sizeClass);
    }
  }

  private synchronized PinnedBlock take(int sizeClass) {
    requireOpen();
    collect(COLLECTED_AT_ONCE);
    ArrayDeque<PinnedBlock> blocks = free.get(sizeClass);
    if (blocks.isEmpty()) {
      collect(waiting.size());
    }
    if (blocks.isEmpty()) {
      refill(blocks, sizeClass);
    }
    PinnedBlock block = blocks.removeFirst();
    block.free = false;
    used++;
    return block;
  }

  /**
   * Returns free blocks that are not part of a slab to the driver; returns false if none can be
   * freed soon.
   */
  private boolean releaseCached() {
    Thread freeing;
    synchronized (this) {
      Thread before = releasing;
      if (closed || !mayWait.getAsBoolean() || (before != null && before.isAlive())) {
        return false;
      }
      List<Long> addresses = takeCached();
      if (addresses.isEmpty()) {
        return false;
      }
      // On a thread of its own, because it waits for the device: kernels there may wait for a peer.
      freeing =
          Thread.ofPlatform()
              .daemon()
              .name("tutti-cuda-release-" + context.device())
              .start(() -> freeAll(addresses));
      releasing = freeing;
    }
    try {
      return freeing.join(RELEASE_WAIT);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private List<Long> takeCached() {
    List<Long> addresses = new ArrayList<>();
    for (ArrayDeque<PinnedBlock> blocks : free) {
      while (!blocks.isEmpty() && 1L << blocks.getFirst().sizeClass > SLAB_LIMIT) {
        PinnedBlock block = blocks.removeFirst();
        addresses.add(block.address());
        allocatedBytes -= 1L << block.sizeClass;
        all.remove(block);
      }
    }
    allocations.removeAll(addresses);
    return addresses;
  }

  private void freeAll(List<Long> addresses) {
    try {
      for (long address : addresses) {
        context.callRelaxed(
            () -> {
              driver.memory().freeHost(address);
              return null;
            });
      }
    } catch (CudaException e) {
      LOG.log(Level.DEBUG, "cannot release free page-locked memory", e);
    }
  }

  private void refill(ArrayDeque<PinnedBlock> blocks, int sizeClass) {
    long blockBytes = 1L << sizeClass;
    long bytes = blockBytes <= SLAB_LIMIT ? SLAB_BYTES : blockBytes;
    long address = context.callRelaxed(() -> driver.memory().allocateHost(bytes));
    allocations.add(address);
    allocatedBytes += bytes;
    MemorySegment slab = MemorySegment.ofAddress(address).reinterpret(bytes);
    for (long offset = 0; offset < bytes; offset += blockBytes) {
      PinnedBlock block = new PinnedBlock(slab.asSlice(offset, blockBytes), sizeClass);
      block.free = true;
      all.add(block);
      blocks.addLast(block);
    }
  }

  /**
   * Declares that a stream's work up to now uses a block.
   *
   * @param block a block that is not freed yet
   * @param stream a stream of this device
   */
  public synchronized void useOn(PinnedBlock block, long stream) {
    requireOpen();
    block.addEvent(events.record(stream));
  }

  /** Returns whether the device is done with all uses declared by {@link #useOn}. */
  public synchronized boolean isIdle(PinnedBlock block) {
    return closed || isDone(block);
  }

  /**
   * Frees a block; must be called only once. Returns at once, whether or not the device is done
   * with the block. Does nothing after {@link #close}.
   */
  public synchronized void free(PinnedBlock block) {
    if (closed) {
      return;
    }
    if (block.free) {
      throw new IllegalStateException("the block is free");
    }
    block.free = true;
    used--;
    if (block.eventCount() == 0) {
      free.get(block.sizeClass).addFirst(block);
    } else {
      waiting.addLast(block);
    }
  }

  /** Checks the blocks that have waited longest; those that must keep waiting move to the end. */
  private void collect(int limit) {
    for (int left = Math.min(limit, waiting.size()); left > 0; left--) {
      // The block stays in its place if the driver throws.
      PinnedBlock block = waiting.getFirst();
      boolean done = isDone(block);
      waiting.removeFirst();
      if (done) {
        free.get(block.sizeClass).addFirst(block);
      } else {
        waiting.addLast(block);
      }
    }
  }

  private boolean isDone(PinnedBlock block) {
    while (block.eventCount() > 0) {
      long event = block.lastEvent();
      if (!context.isReached(event)) {
        return false;
      }
      block.dropLastEvent();
      events.release(event);
    }
    return true;
  }

  /** Returns the number of blocks that are not freed. */
  public synchronized int blocksInUse() {
    return used;
  }

  /** Returns the number of bytes obtained from the driver. */
  public synchronized long allocatedBytes() {
    return allocatedBytes;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
  }

  /**
   * Returns all memory to the driver; blocks still in use must not be touched afterwards. Must be
   * called when the device is idle.
   */
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    awaitRelease();
    context.enter();
    for (PinnedBlock block : all) {
      while (block.eventCount() > 0) {
        events.release(block.lastEvent());
        block.dropLastEvent();
      }
    }
    waiting.clear();
    allocations.forEach(driver.memory()::freeHost);
  }

  private void awaitRelease() {
    Thread freeing = releasing;
    if (freeing != null) {
      boolean _ =
          Uninterrupted.await(
              () -> {
                freeing.join();
                return true;
              });
    }
  }
}
