package dev.tutti.cuda.memory;

import dev.tutti.Registration;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.MemoryPressureListener;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.memory.DeviceBlock.Segment;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A caching allocator for one device's memory. All methods may be called from any thread.
 *
 * <p>A block belongs to a stream: it is used in that stream's order. The next allocation for the
 * stream may reuse the block as soon as it is freed, because that allocation's work follows the
 * last user's work. If other streams use a block as well, {@link #useOn} must say so. Once freed,
 * such a block waits for events in those streams, and in its own stream if that is foreign: a
 * stream of another library is never queried later, when it may no longer exist. While a stream is
 * being captured into a graph, recording its event is postponed. Blocks are cut from segments
 * obtained from the driver: of {@value Segments#SMALL} bytes for sizes up to {@value #SMALL_LIMIT}
 * bytes, of {@value #LARGE_SEGMENT} bytes for sizes up to {@value #LARGE_LIMIT} bytes, and
 * otherwise of the size rounded up to a multiple of {@value Segments#SMALL}. Adjacent free blocks
 * are merged.
 *
 * <p>When the driver is out of memory, everything cached and idle is returned to it, then the
 * listeners are called, and the allocation is retried. If that fails, the garbage collector runs,
 * because a tensor that nobody reaches keeps its memory until then, and a device may be full while
 * the Java heap has room for a long time.
 */
public final class DeviceAllocator {
  /** The granularity of all sizes, in bytes. */
  static final long GRAIN = 512;

  static final long SMALL_LIMIT = 1 << 20;
  static final long LARGE_LIMIT = 10 << 20;
  static final long LARGE_SEGMENT = 32 << 20;

  /** The longest that a full device waits for streams that still use freed memory. */
  private static final Duration RELEASE_WAIT = Duration.ofSeconds(1);

  private static final int COLLECTED_AT_ONCE = 2;
  private static final long POLL_NANOS = 50_000;

  private final DeviceContext context;
  private final CudaDriver driver;
  private final Segments segments;
  private final BooleanSupplier mayWait;
  private final List<MemoryPressureListener> listeners = new CopyOnWriteArrayList<>();
  private final TreeMap<Long, DeviceBlock> used = new TreeMap<>();
  private final FreeBlocks free = new FreeBlocks();
  private final ArrayDeque<FreedBlock> waiting = new ArrayDeque<>();
  private long usedBytes;
  private long segmentBytes;
  private boolean closed;

  /**
   * The memory usage of this allocator.
   *
   * @param usedBytes the number of bytes in blocks that are not freed
   * @param reservedBytes the number of bytes obtained from the driver
   */
  public record Usage(long usedBytes, long reservedBytes) {}

  /**
   * Creates an empty allocator.
   *
   * @param context the device's context
   * @param mayWait whether the device becomes idle by itself; false while a stream block is open
   */
  public DeviceAllocator(DeviceContext context, BooleanSupplier mayWait) {
    this(context, Segments.of(context), mayWait);
  }

  private DeviceAllocator(DeviceContext context, Segments segments, BooleanSupplier mayWait) {
    this.context = context;
    this.driver = context.driver();
    this.segments = segments;
    this.mayWait = mayWait;
  }

  /**
   * Creates an allocator whose segments other processes can open by a 64-byte handle. Returning a
   * segment to the driver waits until the device is idle.
   *
   * @param context the device's context
   * @param mayWait whether the device becomes idle by itself
   */
  public static DeviceAllocator ofPlainSegments(DeviceContext context, BooleanSupplier mayWait) {
    return new DeviceAllocator(context, new Segments.Plain(context), mayWait);
  }

  /**
   * Allocates memory. Enters the device's context.
   *
   * @param bytes the size, at least 1
   * @param stream the stream in whose order the memory is used
   * @throws CudaException if the device is out of memory; the message gives the sizes
   */
  public DeviceBlock allocate(long bytes, BlockStream stream) {
    if (bytes < 1 || bytes > Long.MAX_VALUE / 2) {
      throw new IllegalArgumentException("cannot allocate " + bytes + " bytes");
    }
    long rounded = roundUp(bytes, GRAIN);
    DeviceBlock block = tryAllocate(rounded, stream);
    if (block == null) {
      makeRoom(bytes);
      block = tryAllocate(rounded, stream);
    }
    if (block == null) {
      block = collectGarbage(rounded, stream);
    }
    if (block == null) {
      throw full(bytes);
    }
    // The streams of freed blocks may be of other devices, whose contexts were entered.
    context.enter();
    return block;
  }

  /**
   * Returns cached idle memory to the driver, has listeners free what they can spare, and returns
   * that too. Waits as {@link #releaseCached} does.
   *
   * @param bytes the number of bytes wanted
   */
  public void makeRoom(long bytes) {
    releaseCached();
    for (MemoryPressureListener listener : listeners) {
      listener.onPressure(bytes);
    }
    releaseCached();
  }

  /**
   * Runs the garbage collector, and allocates as soon as the tensors that it found leave enough
   * room.
   *
   * @return null if they do not
   */
  private @Nullable DeviceBlock collectGarbage(long bytes, BlockStream stream) {
    Usage usage = usage();
    if (usage.usedBytes() == 0 || usage.reservedBytes() + room().free() < bytes) {
      return null;
    }
    System.gc();
    long known = usage.usedBytes();
    // Tensors are freed by a thread of the JVM, one after the other.
    while (hasLess(known)) {
      known = usage().usedBytes();
      releaseCached();
      DeviceBlock block = tryAllocate(bytes, stream);
      if (block != null) {
        return block;
      }
    }
    return null;
  }

  /** Waits until tensors use less than the given number of bytes, but not for long. */
  private boolean hasLess(long usedBytes) {
    return until(() -> usage().usedBytes() < usedBytes);
  }

  /** Allocates a block, or returns null if the driver is out of memory. */
  private synchronized @Nullable DeviceBlock tryAllocate(long bytes, BlockStream stream) {
    requireOpen();
    boolean small = bytes <= SMALL_LIMIT;
    collect(COLLECTED_AT_ONCE);
    DeviceBlock block = free.take(stream, small, bytes);
    if (block == null) {
      collect(waiting.size());
      block = free.take(stream, small, bytes);
    }
    if (block == null) {
      block = newSegment(bytes, stream, small);
    }
    if (block == null) {
      return null;
    }
    long rest = block.bytes - bytes;
    if (small ? rest >= GRAIN : rest > SMALL_LIMIT) {
      split(block, bytes);
    }
    block.free = false;
    used.put(block.address, block);
    usedBytes += block.bytes;
    return block;
  }

  private @Nullable DeviceBlock newSegment(long bytes, BlockStream stream, boolean small) {
    long size =
        small
            ? Segments.SMALL
            : bytes <= LARGE_LIMIT ? LARGE_SEGMENT : roundUp(bytes, Segments.SMALL);
    if (isHeld() && room().free() < size) {
      // The driver may wait for the whole device before it reports this.
      return null;
    }
    long address;
    try {
      address = context.callRelaxed(() -> segments.allocate(size));
    } catch (CudaException e) {
      if (!e.isOutOfMemory()) {
        throw e;
      }
      return null;
    }
    segmentBytes += size;
    return new DeviceBlock(new Segment(address, size, stream, small), address, size);
  }

  private void split(DeviceBlock block, long bytes) {
    DeviceBlock rest = new DeviceBlock(block.segment, block.address + bytes, block.bytes - bytes);
    rest.previous = block;
    rest.next = block.next;
    if (rest.next != null) {
      rest.next.previous = rest;
    }
    block.next = rest;
    block.bytes = bytes;
    rest.free = true;
    free.add(rest);
  }

  private CudaException full(long bytes) {
    MemoryCalls.Room room = room();
    Usage usage = usage();
    return new CudaException(
        "allocation of " + bytes + " bytes on cuda:" + context.device(),
        CudaException.OUT_OF_MEMORY,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "of %s bytes, %s are free; tensors of this process use %s, and %s more are kept for reuse"
            .formatted(
                room.total(),
                room.free(),
                usage.usedBytes(),
                usage.reservedBytes() - usage.usedBytes()));
  }

  /**
   * Declares that another stream uses a block too; must be called before the block is freed.
   *
   * @param block the block
   * @param stream the other stream, possibly on another device
   */
  public synchronized void useOn(DeviceBlock block, BlockStream stream) {
    if (block.free) {
      throw new IllegalStateException("the block is free");
    }
    block.useOn(stream);
  }

  /** Makes the next user of the block in use at an address, if any, wait for the given streams. */
  public synchronized void keepFor(long address, BlockStream... streams) {
    DeviceBlock block = find(address);
    if (block != null) {
      for (BlockStream stream : streams) {
        block.useOn(stream);
      }
    }
  }

  /** Makes the next users of all blocks now in use wait for a stream. */
  public synchronized void keepAllFor(BlockStream stream) {
    used.values().forEach(block -> block.useOn(stream));
  }

  /** Returns the block in use that contains an address, or null. */
  public synchronized @Nullable DeviceBlock find(long address) {
    var entry = used.floorEntry(address);
    return entry != null && address - entry.getKey() < entry.getValue().bytes
        ? entry.getValue()
        : null;
  }

  /**
   * Frees a block; must be called only once. Returns at once, whether or not the device is done
   * with the block. Does nothing after {@link #close}.
   *
   * @param block the block
   */
  public synchronized void free(DeviceBlock block) {
    if (closed) {
      return;
    }
    if (used.remove(block.address) == null) {
      throw new IllegalStateException("the block is free");
    }
    usedBytes -= block.bytes;
    BlockStream[] streams = block.takeStreams();
    if (streams.length == 0) {
      giveBack(block);
    } else {
      waiting.add(new FreedBlock(block, streams));
    }
  }

  /**
   * Stops querying a stream for blocks that were already freed.
   *
   * @param stream the stream, which is about to be destroyed
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public synchronized void leave(BlockStream stream) {
    waiting.forEach(freed -> freed.leave(stream));
  }

  /** Checks the blocks that have waited longest; those that must keep waiting move to the end. */
  private void collect(int limit) {
    for (int left = Math.min(limit, waiting.size()); left > 0; left--) {
      // The block stays in its place if the driver throws.
      FreedBlock freed = waiting.getFirst();
      boolean done = freed.isDone();
      waiting.removeFirst();
      if (done) {
        giveBack(freed.block);
      } else {
        waiting.addLast(freed);
      }
    }
  }

  private void giveBack(DeviceBlock block) {
    DeviceBlock whole = block;
    DeviceBlock before = block.previous;
    if (before != null && before.free) {
      free.remove(before);
      whole = join(before, block);
    }
    DeviceBlock after = whole.next;
    if (after != null && after.free) {
      free.remove(after);
      whole = join(whole, after);
    }
    whole.free = true;
    free.add(whole);
  }

  private static DeviceBlock join(DeviceBlock first, DeviceBlock second) {
    first.bytes += second.bytes;
    first.next = second.next;
    if (second.next != null) {
      second.next.previous = first;
    }
    return first;
  }

  /**
   * Returns free segments whose streams are idle to the driver; waits up to one second for streams
   * that are not. A stream that is held longer keeps its segments; all segments are kept if
   * returning one waits for the whole device while a stream block is open.
   */
  public void releaseCached() {
    boolean _ = until(this::releaseIdle);
  }

  private static boolean until(BooleanSupplier isMet) {
    return WaitStrategy.until(isMet, Time.SYSTEM.deadline(RELEASE_WAIT), POLL_NANOS, Time.SYSTEM);
  }

  /** Releases what is idle; returns whether waiting longer could release nothing more. */
  private synchronized boolean releaseIdle() {
    collect(waiting.size());
    if (isHeld()) {
      return true;
    }
    boolean all = waiting.isEmpty();
    for (DeviceBlock block : free.wholeSegments()) {
      BlockStream stream = block.segment.stream;
      if (stream.isForeign() || context.isIdle(stream.handle())) {
        if (isHeld()) {
          // A stream block was opened meanwhile.
          return true;
        }
        release(block);
      } else {
        all = false;
      }
    }
    return all;
  }

  private MemoryCalls.Room room() {
    context.enter();
    return driver.memory().room();
  }

  /** Returns whether a call that waits for the whole device could wait forever. */
  private boolean isHeld() {
    return segments.freeWaits() && !mayWait.getAsBoolean();
  }

  private void release(DeviceBlock block) {
    free.remove(block);
    segmentBytes -= block.segment.bytes;
    context.callRelaxed(
        () -> {
          segments.free(block.segment.address, block.segment.bytes);
          return null;
        });
  }

  /**
   * Adds a listener that is called before an allocation fails.
   *
   * @return a registration that removes the listener when closed
   */
  public Registration addListener(MemoryPressureListener listener) {
    listeners.add(listener);
    AtomicBoolean removed = new AtomicBoolean();
    return () -> {
      if (removed.compareAndSet(false, true)) {
        listeners.remove(listener);
      }
    };
  }

  /**
   * Lets another device of this process access all memory of this device, if it can.
   *
   * @param peer the other device
   */
  public void addPeer(DeviceContext peer) {
    if (driver.devices().canAccessPeer(peer.device(), context.device())) {
      synchronized (this) {
        context.enter();
        segments.addPeer(peer);
      }
    }
  }

  /**
   * Forgets a device that {@link #addPeer} named and that is being given up.
   *
   * @param peer the other device
   */
  public synchronized void removePeer(DeviceContext peer) {
    segments.removePeer(peer);
  }

  /** Returns the memory usage of this allocator. */
  public synchronized Usage usage() {
    return new Usage(usedBytes, segmentBytes);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
  }

  /**
   * Returns all memory to the driver, including blocks in use; these must not be touched
   * afterwards. Must be called when the device is idle.
   */
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    for (FreedBlock freed : waiting) {
      freed.release();
      giveBack(freed.block);
    }
    waiting.clear();
    used.values().forEach(this::giveBack);
    used.clear();
    usedBytes = 0;
    for (DeviceBlock block : free.wholeSegments()) {
      release(block);
    }
  }

  private static long roundUp(long bytes, long multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
  }
}
