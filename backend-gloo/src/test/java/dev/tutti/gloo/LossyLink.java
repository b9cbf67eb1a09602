package dev.tutti.gloo;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A cable between two network interfaces that loses packets at random: each packet that the kernel
 * sends through one interface either comes out of the other or is lost. The interfaces are TUN
 * devices; they disappear when this is closed, even if they were moved elsewhere.
 */
final class LossyLink implements AutoCloseable {
  private static final String DEVICE = "/dev/net/tun";
  private static final int O_RDWR = 2;
  private static final long TUNSETIFF = 0x400454ca;
  private static final short TUN_WITHOUT_HEADER = 0x1001;
  private static final int NAME_BYTES = 16;
  private static final int REQUEST_BYTES = 40;
  private static final short POLLIN = 1;
  private static final int POLL_MILLIS = 50;
  private static final int LARGEST_PACKET = 65_536;

  private static final MethodHandle OPEN =
      function("open", 2, ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
  private static final MethodHandle CLOSE =
      function("close", 1, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
  private static final MethodHandle IOCTL =
      function(
          "ioctl",
          2,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_INT,
          ValueLayout.JAVA_LONG,
          ValueLayout.ADDRESS);
  private static final MethodHandle READ = transfer("read");
  private static final MethodHandle WRITE = transfer("write");
  private static final MethodHandle POLL =
      function(
          "poll",
          3,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_LONG,
          ValueLayout.JAVA_INT);

  private final double loss;
  private final int[] devices = new int[2];
  private final Thread[] threads = new Thread[2];
  private final AtomicLong carried = new AtomicLong();
  private final AtomicLong lost = new AtomicLong();
  private volatile boolean closed;

  /**
   * Creates the interfaces, which the caller then gives addresses and brings up, and starts to
   * carry packets.
   *
   * @param first name of one interface
   * @param second name of the other interface
   * @param loss the share of packets to lose, 0 to 1
   * @param seed seed of the random numbers that choose the lost packets
   * @throws IOException if this process lacks permission, or there are no such devices
   */
  LossyLink(String first, String second, double loss, long seed) throws IOException {
    this.loss = loss;
    devices[0] = open(first);
    try {
      devices[1] = open(second);
    } catch (IOException e) {
      call(CLOSE, devices[0]);
      throw e;
    }
    for (int end = 0; end < 2; end++) {
      int from = devices[end];
      int to = devices[1 - end];
      SplittableRandom random = new SplittableRandom(seed + end);
      threads[end] =
          Thread.ofPlatform().daemon().name("link-" + first).start(() -> carry(from, to, random));
    }
  }

  private static MethodHandle function(
      String name, int fixed, ValueLayout result, ValueLayout... parameters) {
    FunctionDescriptor descriptor = FunctionDescriptor.of(result, parameters);
    MemorySegment address = Linker.nativeLinker().defaultLookup().findOrThrow(name);
    return fixed == parameters.length
        ? Linker.nativeLinker().downcallHandle(address, descriptor)
        : Linker.nativeLinker()
            .downcallHandle(address, descriptor, Linker.Option.firstVariadicArg(fixed));
  }

  private static MethodHandle transfer(String name) {
    return function(
        name,
        3,
        ValueLayout.JAVA_LONG,
        ValueLayout.JAVA_INT,
        ValueLayout.ADDRESS,
        ValueLayout.JAVA_LONG);
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
      int device = (int) call(OPEN, arena.allocateFrom(DEVICE), O_RDWR);
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
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment packet = arena.allocate(LARGEST_PACKET);
      MemorySegment wanted = arena.allocate(8, 4);
      wanted.set(ValueLayout.JAVA_INT, 0, from);
      wanted.set(ValueLayout.JAVA_SHORT, 4, POLLIN);
      while (!closed) {
        if ((int) POLL.invokeExact(wanted, 1L, POLL_MILLIS) <= 0) {
          continue;
        }
        long length = (long) READ.invokeExact(from, packet, (long) LARGEST_PACKET);
        if (length <= 0) {
          continue;
        }
        if (random.nextDouble() < loss) {
          lost.incrementAndGet();
        } else if ((long) WRITE.invokeExact(to, packet, length) == length) {
          carried.incrementAndGet();
        }
      }
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Returns how many packets arrived. */
  long carried() {
    return carried.get();
  }

  /** Returns how many packets were lost. */
  long lost() {
    return lost.get();
  }

  @Override
  public void close() throws IOException {
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
