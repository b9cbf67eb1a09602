package dev.tutti.spi;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Is the memory of this process's large tensors, which other processes of the user on this host can
 * map: so that a backend may let ranks read each other's tensors where they are. It is there on
 * Linux, where whoever started the JVM lets this module call native code. Any thread may use it.
 */
public final class SharedHeap {
  /*
   * One file without a name (memfd_create(2)), mapped whole when the first large tensor is made, with
   * room for all that may come: it takes memory only where something was written. What is freed is
   * punched out of it, which gives the memory back and makes it zero for the next. Others open the file
   * by /proc/PID/fd/N, for which the system demands the same user, and know it by a random number at its
   * beginning. A crash leaves nothing behind.
   *
   * The JDK bounds what it allocates in automatic arenas by the size of the Java heap, and collects
   * garbage when that is reached. So at most half of that is given out here, and the JDK asked for what
   * goes beyond.
   */
  /** Says whether large tensors are in this memory. */
  public static final Setting<Boolean> SETTING =
      Setting.flag(
          "TUTTI_SHARED_TENSORS",
          true,
          "tensors of 32 KiB or more that Tutti allocates are in memory that other ranks of the"
              + " host can read, where the system allows it");

  /** Least bytes of an allocation that is worth a place here. */
  public static final long LEAST_BYTES = 32 * 1024;

  private static final Logger LOG = System.getLogger(SharedHeap.class.getName());
  private static final long PAGE = 64 * 1024;
  private static final int CLOSE_ON_EXEC = 1;
  private static final int PUNCH_HOLE_KEEP_SIZE = 3;
  private static final String NAME = "tutti-tensors";

  private static final class Holder {
    static final @Nullable SharedHeap HEAP = make();

    private Holder() {}
  }

  private static volatile @Nullable SharedHeap made;

  private final MemorySegment memory;
  private final int descriptor;
  private final long number;
  private final MethodHandle fallocate;
  private final long limit;
  private final TreeMap<Long, Long> free = new TreeMap<>();
  private long used;

  private SharedHeap(int descriptor, MethodHandle fallocate, long limit) throws IOException {
    this.descriptor = descriptor;
    this.fallocate = fallocate;
    this.limit = limit;
    long size = Math.max(1L << 30, 8 * Long.highestOneBit(limit));
    try (FileChannel file =
        FileChannel.open(
            Path.of("/proc/self/fd/" + descriptor),
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      memory = file.map(FileChannel.MapMode.READ_WRITE, 0, size, Arena.global());
    }
    number = new SecureRandom().nextLong();
    memory.set(ValueLayout.JAVA_LONG, 0, number);
    free.put(PAGE, size - PAGE);
  }

  private static @Nullable SharedHeap make() {
    try {
      if (!System.getProperty("os.name", "").equals("Linux")
          || !SharedHeap.class.getModule().isNativeAccessEnabled()
          || !Settings.fromEnvironment().get(SETTING)) {
        return null;
      }
      Linker linker = Linker.nativeLinker();
      MethodHandle create =
          linker.downcallHandle(
              linker.defaultLookup().findOrThrow("memfd_create"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
      MethodHandle fallocate =
          linker.downcallHandle(
              linker.defaultLookup().findOrThrow("fallocate"),
              FunctionDescriptor.of(
                  ValueLayout.JAVA_INT,
                  ValueLayout.JAVA_INT,
                  ValueLayout.JAVA_INT,
                  ValueLayout.JAVA_LONG,
                  ValueLayout.JAVA_LONG));
      try (Arena arena = Arena.ofConfined()) {
        int descriptor = (int) create.invokeExact(arena.allocateFrom(NAME), CLOSE_ON_EXEC);
        if (descriptor < 0) {
          return null;
        }
        SharedHeap heap =
            new SharedHeap(descriptor, fallocate, Runtime.getRuntime().maxMemory() / 2);
        made = heap;
        return heap;
      }
    } catch (Throwable t) {
      LOG.log(Logger.Level.INFO, "tensors are not in memory that other ranks can read", t);
      return null;
    }
  }

  /** Returns the memory of this process, made if need be; empty where it cannot be. */
  public static Optional<SharedHeap> ofProcess() {
    return Optional.ofNullable(Holder.HEAP);
  }

  /**
   * Allocates zeroed memory that lives as long as an arena: here if it is large, the arena is one
   * of the JDK's, and there is room; else by the arena.
   *
   * @param arena owns the memory
   * @param bytes how many
   * @param alignment of the first byte, at most 4096
   */
  public static MemorySegment allocate(Arena arena, long bytes, long alignment) {
    if (bytes >= LEAST_BYTES && arena.getClass().getModule() == Object.class.getModule()) {
      SharedHeap heap = Holder.HEAP;
      MemorySegment memory = heap == null ? null : heap.take(arena, bytes);
      if (memory != null) {
        return memory;
      }
    }
    return arena.allocate(bytes, alignment);
  }

  /**
   * Tells whether memory is in that of this process, which is not made for that.
   *
   * @param segment any memory
   */
  public static boolean has(MemorySegment segment) {
    SharedHeap heap = made;
    return heap != null
        && segment.isNative()
        && segment.address() >= heap.address()
        && segment.byteSize() <= heap.byteSize() - (segment.address() - heap.address());
  }

  /**
   * Allocates memory here whatever its size.
   *
   * @param bytes how many; lives as long as it is reachable
   * @return zeroed memory, empty if there is no room
   */
  public Optional<MemorySegment> allocate(long bytes) {
    return Optional.ofNullable(take(Arena.ofAuto(), bytes));
  }

  private @Nullable MemorySegment take(Arena arena, long bytes) {
    long length = Math.ceilDiv(bytes, PAGE) * PAGE;
    long offset = reserve(length);
    if (offset < 0) {
      return null;
    }
    try {
      return MemorySegment.ofAddress(memory.address() + offset)
          .reinterpret(bytes, arena, ended -> release(offset, length));
    } catch (RuntimeException | Error e) {
      release(offset, length);
      throw e;
    }
  }

  private synchronized long reserve(long length) {
    if (length > limit - used) {
      return -1;
    }
    Map.Entry<Long, Long> range = free.firstEntry();
    while (range != null && range.getValue() < length) {
      range = free.higherEntry(range.getKey());
    }
    if (range == null) {
      return -1;
    }
    long offset = range.getKey();
    free.remove(offset);
    if (range.getValue() > length) {
      free.put(offset + length, range.getValue() - length);
    }
    used += length;
    return offset;
  }

  private void release(long offset, long length) {
    try {
      int failed = (int) fallocate.invokeExact(descriptor, PUNCH_HOLE_KEEP_SIZE, offset, length);
      if (failed != 0) {
        memory.asSlice(offset, length).fill((byte) 0);
      }
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
    synchronized (this) {
      used -= length;
      long from = offset;
      long to = offset + length;
      Map.Entry<Long, Long> before = free.lowerEntry(offset);
      if (before != null && before.getKey() + before.getValue() == offset) {
        from = before.getKey();
      }
      Long after = free.remove(to);
      if (after != null) {
        to += after;
      }
      free.put(from, to - from);
    }
  }

  /** Returns the address of its first byte in this process. */
  public long address() {
    return memory.address();
  }

  /** Returns its length, most of which is no memory. */
  public long byteSize() {
    return memory.byteSize();
  }

  /** Returns the number of its file in this process. */
  public int descriptor() {
    return descriptor;
  }

  /** Returns the random number that it begins with. */
  public long number() {
    return number;
  }

  /** Returns how many bytes are given out. */
  synchronized long used() {
    return used;
  }

  /**
   * Maps the memory of another process, to be read only: to write there ends the JVM.
   *
   * @param process its number, in this process's name space
   * @param descriptor what {@link #descriptor} is there
   * @param number what {@link #number} is there
   * @param byteSize what {@link #byteSize} is there
   * @param arena unmaps it when it ends
   * @throws IOException if it cannot be, or is that of another process
   */
  public static MemorySegment map(
      long process, int descriptor, long number, long byteSize, Arena arena) throws IOException {
    SharedHeap own = Holder.HEAP;
    if (own != null && own.number == number) {
      return MemorySegment.ofAddress(own.address()).reinterpret(byteSize, arena, null);
    }
    Path path = Path.of("/proc/" + process + "/fd/" + descriptor);
    // What else it may be could keep who opens it waiting.
    String target = Files.readSymbolicLink(path).toString();
    if (!target.startsWith("/memfd:" + NAME)) {
      throw new IOException(path + " is " + target);
    }
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
      if (file.size() != byteSize) {
        throw new IOException(path + " has " + file.size() + " bytes, not " + byteSize);
      }
      MemorySegment memory = file.map(FileChannel.MapMode.READ_ONLY, 0, byteSize, arena);
      if (memory.get(ValueLayout.JAVA_LONG, 0) != number) {
        throw new IOException(path + " is of another process");
      }
      // Loops that add tensors get slow when they see buffers of several kinds.
      return MemorySegment.ofAddress(memory.address()).reinterpret(byteSize, arena, null);
    }
  }
}
