package dev.tutti.cuda.memory;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.EventPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Allocates page-locked host memory for one device, and keeps what is freed. A block may be freed
 * while the device still uses it: it waits for the events of its uses first. Sizes are powers of
 * two; those up to {@value #SLAB_LIMIT} bytes are cut from slabs. Any thread may call any method.
 */
public final class PinnedAllocator {
  /** Is the smallest block: two never share a cache line. */
  static final int LEAST_BYTES = 64;

  static final int SLAB_LIMIT = 4096;
  static final int SLAB_BYTES = 64 << 10;
  private static final int CLASSES = 41;
  private static final int COLLECTED_AT_ONCE = 2;

  private final DeviceContext context;
  private final CudaDriver driver;
  private final EventPool events;
  private final List<ArrayDeque<PinnedBlock>> free = new ArrayList<>();
  private final ArrayDeque<PinnedBlock> waiting = new ArrayDeque<>();
  private final List<PinnedBlock> all = new ArrayList<>();
  private final List<Long> allocations = new ArrayList<>();
  private long allocatedBytes;
  private int used;
  private boolean closed;

  /**
   * Creates an allocator that holds nothing yet.
   *
   * @param context the device
   * @param events events of the device
   */
  public PinnedAllocator(DeviceContext context, EventPool events) {
    this.context = context;
    this.driver = context.driver();
    this.events = events;
    for (int i = 0; i < CLASSES; i++) {
      free.add(new ArrayDeque<>());
    }
  }

  /**
   * Allocates memory, with any content.
   *
   * @param bytes at least this many
   */
  public PinnedBlock allocate(long bytes) {
    if (bytes < 1 || bytes > 1L << (CLASSES - 1)) {
      throw new IllegalArgumentException("cannot allocate " + bytes + " bytes of host memory");
    }
    int sizeClass = 64 - Long.numberOfLeadingZeros(Math.max(bytes, LEAST_BYTES) - 1);
    synchronized (this) {
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
   * Says that a stream uses a block up to where the stream is now.
   *
   * @param block not yet freed
   * @param stream of this device
   */
  public void useOn(PinnedBlock block, long stream) {
    synchronized (this) {
      requireOpen();
      context.enter();
      long event = events.acquire();
      try {
        driver.events().record(event, stream);
      } catch (RuntimeException e) {
        events.release(event);
        throw e;
      }
      block.addEvent(event);
    }
  }

  /** Tells whether the device is done with all uses that {@link #useOn} was told of. */
  public synchronized boolean isIdle(PinnedBlock block) {
    return closed || isDone(block);
  }

  /**
   * Frees a block; call it once. Returns at once, whether or not the device is done with it. Does
   * nothing after {@link #close}.
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

  /** Looks at the blocks that wait longest; those that go on waiting go to the end. */
  private void collect(int limit) {
    for (int left = Math.min(limit, waiting.size()); left > 0; left--) {
      // It stays in its place if the driver throws.
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

  /** Returns the number of bytes that the driver gave. */
  public synchronized long allocatedBytes() {
    return allocatedBytes;
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
  }

  /** Gives back everything; whoever still has a block must not touch it. */
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
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
}
