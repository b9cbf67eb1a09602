package dev.tutti.cpu.memory;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The memory of this process's large tensors, which other processes of the same user on this host
 * can map, so that a backend may let ranks read each other's tensors in place. It is available on
 * Linux if the JVM was started with native access enabled for this module. Any thread may call its
 * methods.
 */
public final class SharedHeap {
  /*
   * The memory is one unnamed file (memfd_create(2)). It is mapped as a whole when the first large
   * tensor is created, with room for all that may follow, and uses memory only where something was
   * written. A freed range is punched out of the file, which returns its memory and makes it zero
   * for the next tensor. The exception is some MiB that are zeroed and kept, since the system takes
   * longer to provide a page than to fill it. Other processes open the file as /proc/PID/fd/N, for
   * which the system requires the same user, and recognize it by a random number at its beginning.
   * A crash leaves nothing behind.
   *
   * The JDK limits what it allocates in automatic arenas, and collects garbage when that limit is
   * reached. At most half of that limit is therefore allocated here, also with garbage collection,
   * and the JDK is asked for anything beyond.
   *
   * Memory that is freed while a rank lets others read its tensors stays unchanged until they have
   * finished, see HeapLoans: otherwise they might read zeros, or the contents of the next tensor
   * there, instead of the tensor.
   */
  /** Whether large tensors are in this memory. */
  public static final Setting<Boolean> SETTING =
      Setting.flag(
          "TUTTI_SHARED_TENSORS",
          true,
          "allocate tensors of 32 KiB or more in memory that other ranks on the host can read,"
              + " where the system allows it");

  /** The minimum size in bytes of an allocation that is worth a place here. */
  public static final long LEAST_BYTES = 32 * 1024;

  private static final Logger LOG = System.getLogger(SharedHeap.class.getName());
  private static final long PAGE = 64 * 1024;
  private static final long LEAST_REST_NANOS = 1_000_000_000;
  private static final long MOST_REST_NANOS = 300_000_000_000L;
  private static final long SMALL_PAGE = 4096;
  private static final long FREED_NANOS = 100_000_000;

  /** The maximum memory that is kept for reuse, and how much of it one tensor may keep. */
  private static final long MOST_KEPT = 32 << 20;

  private static final long LARGEST_KEPT = MOST_KEPT / 2;
  private static final String NAME = "tutti-tensors";

  private static final class Holder {
    static final @Nullable SharedHeap HEAP = make();

    private Holder() {}
  }

  private static volatile @Nullable SharedHeap made;

  private final MemorySegment memory;
  private final int descriptor;
  private final long number;
  private final SharedHeapCalls calls;
  private final long limit;
  private final FreeRanges free;
  private final FreeRanges kept = new FreeRanges();
  private long keptBytes;
  private final HeapLoans<Freed> loans = new HeapLoans<>();
  private long used;
  private long restNanos = LEAST_REST_NANOS;
  private final Time time;
  private long collectNotBefore;

  private SharedHeap(int descriptor, SharedHeapCalls calls, long limit, Time time)
      throws IOException {
    this.descriptor = descriptor;
    this.calls = calls;
    this.limit = limit;
    this.time = time;
    collectNotBefore = time.nanoTime();
    long size = Math.max(1L << 30, 4 * Long.highestOneBit(limit));
    memory =
        calls.closedWith(
            SharedHeapCalls.map(
                Path.of("/proc/self/fd/" + descriptor), false, size, Arena.ofAuto()),
            descriptor);
    calls.keepFromDumps(memory);
    number = time.random();
    memory.set(ValueLayout.JAVA_LONG, 0, number);
    free = new FreeRanges(PAGE, size - PAGE);
  }

  private static @Nullable SharedHeap make() {
    try {
      if (!System.getProperty("os.name", "").equals("Linux")
          || !SharedHeap.class.getModule().isNativeAccessEnabled()
          || !Settings.fromEnvironment().get(SETTING)
          || !HeapBounds.isRoomFree()) {
        return null;
      }
      SharedHeap heap = create();
      made = heap;
      return heap;
    } catch (Throwable t) {
      LOG.log(
          Logger.Level.DEBUG, "tensors cannot be allocated in memory that other ranks can read", t);
      return null;
    }
  }

  /** Creates memory beside that of this process. */
  static SharedHeap create() throws IOException {
    SharedHeapCalls calls = new SharedHeapCalls();
    return new SharedHeap(calls.makeFile(NAME), calls, HeapBounds.directMemory() / 2, Time.SYSTEM);
  }

  /**
   * Returns the memory of this process, creating it if necessary; empty if it cannot be created.
   */
  public static Optional<SharedHeap> ofProcess() {
    return Optional.ofNullable(Holder.HEAP);
  }

  /**
   * Allocates zeroed memory that lives as long as it is reachable: here if it is large and there is
   * room, perhaps after garbage collection, or else by the JDK.
   *
   * @param bytes the size in bytes
   * @param alignment the alignment of the first byte, at most 4096
   */
  public static MemorySegment allocate(long bytes, long alignment) {
    Arena arena = Arena.ofAuto();
    SharedHeap heap = bytes >= LEAST_BYTES ? Holder.HEAP : null;
    MemorySegment memory = heap == null ? null : heap.takeOrCollect(arena, bytes);
    return memory == null ? allocate(heap, arena, bytes, alignment) : memory;
  }

  /**
   * Allocates zeroed memory that lives as long as an arena: here if it is large, the arena is one
   * of the JDK's, and there is room; or else in the arena.
   *
   * @param arena the arena that owns the memory
   * @param bytes the size in bytes
   * @param alignment the alignment of the first byte, at most 4096
   */
  public static MemorySegment allocate(Arena arena, long bytes, long alignment) {
    boolean fits = bytes >= LEAST_BYTES && arena.getClass().getModule() == Object.class.getModule();
    SharedHeap heap = fits ? Holder.HEAP : null;
    MemorySegment memory = heap == null ? null : heap.takeBounded(arena, bytes);
    return memory == null ? allocate(heap, arena, bytes, alignment) : memory;
  }

  /**
   * Allocates in an arena or, if the arena has no room after a while, here if there is room by
   * then.
   */
  static MemorySegment allocate(
      @Nullable SharedHeap heap, Arena arena, long bytes, long alignment) {
    try {
      return arena.allocate(bytes, alignment);
    } catch (OutOfMemoryError e) {
      MemorySegment memory = heap == null ? null : heap.takeBounded(arena, bytes);
      if (memory == null) {
        throw e;
      }
      return memory;
    }
  }

  /**
   * Returns the memory of this process, or null if it has not been created yet, for instance for a
   * large tensor. Operations call this each time, so it creates no object.
   */
  public static @Nullable SharedHeap ifMade() {
    return made;
  }

  /**
   * Returns whether memory is part of this process's shared heap; does not create the heap.
   *
   * @param segment any memory segment
   */
  public static boolean has(MemorySegment segment) {
    SharedHeap heap = made;
    return heap != null
        && segment.isNative()
        && segment.address() >= heap.address()
        && segment.byteSize() <= heap.byteSize() - (segment.address() - heap.address());
  }

  /**
   * Allocates memory here regardless of its size.
   *
   * @param bytes the size in bytes; the memory lives as long as it is reachable
   * @return zeroed memory, or empty if there is no room
   */
  public Optional<MemorySegment> allocate(long bytes) {
    return bytes <= 0 || bytes > memory.byteSize()
        ? Optional.empty()
        : Optional.ofNullable(take(Arena.ofAuto(), bytes, memory.byteSize()));
  }

  /** Takes memory for a tensor. */
  @Nullable MemorySegment takeBounded(Arena arena, long bytes) {
    return bytes > limit ? null : take(arena, bytes, limit);
  }

  /**
   * Takes memory; if there is none, first collects garbage, less and less often if that does not
   * help.
   */
  @Nullable MemorySegment takeOrCollect(Arena arena, long bytes) {
    MemorySegment taken = takeBounded(arena, bytes);
    if (taken != null || bytes > limit || !mayCollect()) {
      return taken;
    }
    System.gc();
    long deadline = time.nanoTime() + FREED_NANOS;
    do {
      Uninterrupted.park(time, this, FREED_NANOS / 50);
      taken = takeBounded(arena, bytes);
    } while (taken == null && time.nanoTime() - deadline < 0);
    collected(taken != null);
    return taken;
  }

  private synchronized boolean mayCollect() {
    long now = time.nanoTime();
    if (now - collectNotBefore < 0) {
      return false;
    }
    collectNotBefore = now + MOST_REST_NANOS;
    return true;
  }

  private synchronized void collected(boolean hasHelped) {
    restNanos = hasHelped ? LEAST_REST_NANOS : Math.min(2 * restNanos, MOST_REST_NANOS);
    collectNotBefore = time.nanoTime() + restNanos;
  }

  private @Nullable MemorySegment take(Arena arena, long bytes, long most) {
    long length = Math.ceilDiv(bytes, PAGE) * PAGE;
    long counted = Math.ceilDiv(bytes, SMALL_PAGE) * SMALL_PAGE;
    long offset = reserve(length, counted, most);
    if (offset < 0) {
      return null;
    }
    AtomicBoolean released = new AtomicBoolean();
    Freed freed = new Freed(offset, length, counted);
    Runnable release =
        () -> {
          if (released.compareAndSet(false, true)) {
            releaseAll(loans.free(freed));
          }
        };
    try {
      return MemorySegment.ofAddress(memory.address() + offset)
          .reinterpret(bytes, arena, ended -> release.run());
    } catch (RuntimeException | Error e) {
      release.run();
      throw e;
    }
  }

  private synchronized long reserve(long length, long counted, long most) {
    if (counted > most - used) {
      return -1;
    }
    long offset = length > LARGEST_KEPT ? -1 : kept.take(length);
    if (offset >= 0) {
      keptBytes -= length;
    } else {
      offset = free.take(length);
    }
    used += offset < 0 ? 0 : counted;
    return offset;
  }

  private void releaseAll(List<Freed> unread) {
    // Each collective ends a loan, usually with nothing to release, and must not allocate an
    // iterator.
    if (!unread.isEmpty()) {
      unread.forEach(this::release);
    }
  }

  private void release(Freed freed) {
    boolean isKept = keep(freed);
    if (isKept || !calls.punch(descriptor, freed.offset, freed.length)) {
      memory.asSlice(freed.offset, freed.length).fill((byte) 0);
    }
    synchronized (this) {
      used -= freed.counted;
      (isKept ? kept : free).give(freed.offset, freed.length);
    }
  }

  /** Returns whether a freed place keeps its memory. */
  private synchronized boolean keep(Freed freed) {
    boolean isKept = freed.length <= LARGEST_KEPT && freed.length <= MOST_KEPT - keptBytes;
    keptBytes += isKept ? freed.length : 0;
    return isKept;
  }

  /** A place that is no longer used. */
  private record Freed(long offset, long length, long counted) {}

  /**
   * From now on, keeps freed memory unchanged while others read it.
   *
   * @return a number for {@link #endLoan}
   */
  public int beginLoan() {
    return loans.begin();
  }

  /**
   * Ends the loan that {@link #beginLoan} began: all readers have finished, or their reads do not
   * count.
   *
   * @param loan the number that it returned; to be passed once only
   */
  public void endLoan(int loan) {
    releaseAll(loans.end(loan));
  }

  /** Returns the address of the first byte of this memory in this process. */
  public long address() {
    return memory.address();
  }

  /** Returns the length of this memory, which is mostly not backed by memory. */
  public long byteSize() {
    return memory.byteSize();
  }

  /** Returns the file descriptor of this memory in this process. */
  public int descriptor() {
    return descriptor;
  }

  /** Returns the random number with which this memory begins. */
  public long number() {
    return number;
  }

  /** Returns how many bytes are allocated. */
  synchronized long used() {
    return used;
  }

  /**
   * Maps the memory of another process for reading only: writing to it crashes the JVM. All callers
   * that map the same memory get the same mapping.
   *
   * @param process its process id, in this process's pid namespace
   * @param theirDescriptor the value of {@link #descriptor} there
   * @param theirNumber the value of {@link #number} there
   * @param byteSize the value of {@link #byteSize} there
   * @return the mapping, which the caller must close
   * @throws IOException if it cannot be mapped, or belongs to another process
   */
  public HeapMapping map(long process, int theirDescriptor, long theirNumber, long byteSize)
      throws IOException {
    return HeapMapping.of(
        new HeapMapping.Owner(process, theirNumber),
        byteSize,
        arena ->
            theirNumber == number
                ? ownView(byteSize, arena)
                : viewOf(process, theirDescriptor, theirNumber, byteSize, arena));
  }

  private MemorySegment ownView(long byteSize, Arena arena) throws IOException {
    if (byteSize != byteSize()) {
      throw new IOException("this process shares " + byteSize() + " bytes, not " + byteSize);
    }
    return MemorySegment.ofAddress(address()).reinterpret(byteSize, arena, null);
  }

  private MemorySegment viewOf(
      long process, int theirDescriptor, long theirNumber, long byteSize, Arena arena)
      throws IOException {
    Path path = Path.of("/proc/" + process + "/fd/" + theirDescriptor);
    // Opening anything else that it may refer to could block.
    String target = Files.readSymbolicLink(path).toString();
    if (!target.startsWith("/memfd:" + NAME)) {
      throw new IOException(path + " is " + target);
    }
    MemorySegment mapped = SharedHeapCalls.map(path, true, byteSize, arena);
    calls.keepFromDumps(mapped);
    if (mapped.get(ValueLayout.JAVA_LONG, 0) != theirNumber) {
      throw new IOException(path + " belongs to another process");
    }
    // Loops that add tensors become slow when they see buffers of several kinds.
    return MemorySegment.ofAddress(mapped.address()).reinterpret(byteSize, arena, null);
  }
}
