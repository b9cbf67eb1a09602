package dev.tutti.aeron;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * A link between two TUN devices that loses packets at random and delays the others: what the
 * kernel sends through one device arrives at the other. The devices disappear when the link is
 * closed.
 */
public final class SlowLink implements AutoCloseable {
  private static final String DEVICE = "/dev/net/tun";
  private static final int READ_WRITE_AT_ONCE = 04002;
  private static final long TUNSETIFF = 0x400454ca;
  private static final short TUN_WITHOUT_HEADER = 0x1001;
  private static final int NAME_BYTES = 16;
  private static final int REQUEST_BYTES = 40;
  private static final int LARGEST_PACKET = 65_536;
  private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

  private static final MethodHandle OPEN = function("open", 2, int.class, "pi");
  private static final MethodHandle CLOSE = function("close", 1, int.class, "i");
  private static final MethodHandle IOCTL = function("ioctl", 2, int.class, "ilp");
  private static final MethodHandle READ = function("read", 3, long.class, "ipl");
  private static final MethodHandle WRITE = function("write", 3, long.class, "ipl");

  /** The most that waits for a link with a rate, as in a router; the rest is lost. */
  private static final long QUEUE_BYTES = 256 << 10;

  private final double loss;
  private final long delayNanos;
  private final long bytesPerSecond;
  private final int[] devices = new int[2];
  private final Thread[] threads = new Thread[2];
  private final AtomicLong lost = new AtomicLong();
  private volatile boolean closed;

  private record Packet(MemorySegment bytes, long due) {}

  /**
   * Creates the devices and starts to carry packets.
   *
   * @param first the name of one device
   * @param second the name of the other device
   * @param loss the fraction of packets that are lost, 0 to 1
   * @param delayMillis the delay of the other packets
   * @throws IOException if this process lacks the permission, or the devices cannot be created
   */
  public SlowLink(String first, String second, double loss, long delayMillis) throws IOException {
    this(first, second, loss, delayMillis, Long.MAX_VALUE);
  }

  /**
   * Creates the devices and starts to carry packets, of which a limited number of bytes a second
   * passes in each direction.
   */
  public SlowLink(String first, String second, double loss, long delayMillis, long bytesPerSecond)
      throws IOException {
    this.bytesPerSecond = bytesPerSecond;
    this.loss = loss;
    this.delayNanos = TimeUnit.MILLISECONDS.toNanos(delayMillis);
    devices[0] = open(first);
    try {
      devices[1] = open(second);
    } catch (IOException e) {
      call(CLOSE, devices[0]);
      throw e;
    }
    for (int end = 0; end < 2; end++) {
      int from = end;
      threads[end] =
          Thread.ofPlatform()
              .daemon()
              .name("link-" + first)
              .start(() -> carry(devices[from], devices[1 - from], new SplittableRandom(from)));
    }
  }

  private static MethodHandle function(String name, int fixed, Class<?> result, String arguments) {
    ValueLayout[] layouts = new ValueLayout[arguments.length()];
    for (int i = 0; i < layouts.length; i++) {
      layouts[i] =
          switch (arguments.charAt(i)) {
            case 'i' -> ValueLayout.JAVA_INT;
            case 'l' -> ValueLayout.JAVA_LONG;
            default -> ValueLayout.ADDRESS;
          };
    }
    FunctionDescriptor descriptor =
        FunctionDescriptor.of(
            result == int.class ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG, layouts);
    Linker linker = Linker.nativeLinker();
    MemorySegment address = linker.defaultLookup().findOrThrow(name);
    return fixed == layouts.length
        ? linker.downcallHandle(address, descriptor)
        : linker.downcallHandle(address, descriptor, Linker.Option.firstVariadicArg(fixed));
  }

  private static long call(MethodHandle function, Object... arguments) {
    try {
      return ((Number) function.invokeWithArguments(arguments)).longValue();
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static int open(String name) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      int device = (int) call(OPEN, arena.allocateFrom(DEVICE), READ_WRITE_AT_ONCE);
      if (device < 0) {
        throw new IOException("cannot open " + DEVICE);
      }
      MemorySegment request = arena.allocate(REQUEST_BYTES);
      request.setString(0, name);
      request.set(ValueLayout.JAVA_SHORT, NAME_BYTES, TUN_WITHOUT_HEADER);
      if (call(IOCTL, device, TUNSETIFF, request) < 0) {
        call(CLOSE, device);
        throw new IOException("cannot make the interface " + name + " by " + DEVICE);
      }
      return device;
    }
  }

  private void carry(int from, int to, SplittableRandom random) {
    ArrayDeque<Packet> late = new ArrayDeque<>();
    long free = Time.SYSTEM.nanoTime();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(LARGEST_PACKET);
      while (!closed) {
        long length = (long) READ.invokeExact(from, buffer, (long) LARGEST_PACKET);
        long now = Time.SYSTEM.nanoTime();
        free = free - now < 0 ? now : free;
        boolean isFull = free - now > nanos(QUEUE_BYTES);
        if (length > 0 && (isFull || random.nextDouble() < loss)) {
          lost.incrementAndGet();
        } else if (length > 0) {
          free += nanos(length);
          MemorySegment copy = Arena.ofAuto().allocate(length);
          copy.copyFrom(buffer.asSlice(0, length));
          late.add(new Packet(copy, free + delayNanos));
        }
        Packet next = late.peek();
        if (next != null && Time.SYSTEM.nanoTime() - next.due >= 0) {
          var _ = (long) WRITE.invokeExact(to, next.bytes, next.bytes.byteSize());
          late.remove();
        } else if (length <= 0) {
          LockSupport.parkNanos(PAUSE_NANOS);
        }
      }
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long nanos(long bytes) {
    return (long) (1e9 * bytes / bytesPerSecond);
  }

  /** Returns how many packets were lost. */
  public long lost() {
    return lost.get();
  }

  @Override
  public void close() {
    closed = true;
    try {
      for (Thread thread : threads) {
        thread.join();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    for (int device : devices) {
      call(CLOSE, device);
    }
  }
}
