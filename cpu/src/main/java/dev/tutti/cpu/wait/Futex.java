package dev.tutti.cpu.wait;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Lets a thread sleep until a word in memory shared between processes changes: Linux's {@code
 * futex(2)}. It is available only if this module may call native code, so that no warning is
 * printed. Static methods may be called from any thread; an instance is used by one thread.
 */
public final class Futex {
  /*
   * Linking the call costs a young process a tenth of a second of its core. Ranks that never wait
   * for long should not pay for that, and no rank should while it holds up others. The JDK's
   * common pool therefore links it once ranks of this process have often wanted to sleep or to wake
   * others; until then they park, and are not woken. The counter may lose some calls, because
   * threads update it without synchronization.
   */
  private static final int WAIT = 0;
  private static final int WAKE = 1;
  private static final long SECOND = 1_000_000_000;
  private static final Map<String, Long> NUMBERS =
      Map.of("amd64", 202L, "x86_64", 202L, "aarch64", 98L);
  private static final long NUMBER = number();
  private static final int CALLS_BEFORE_LINKING = 512;
  private static final AtomicBoolean LINKING = new AtomicBoolean();
  private static int callsBefore;
  private static volatile boolean isLinked;

  /** Holds the call, which is linked when this class is initialized. */
  private static final class Linked {
    static final MethodHandle CALL = call();

    private Linked() {}

    private static MethodHandle call() {
      Linker linker = Linker.nativeLinker();
      FunctionDescriptor descriptor =
          FunctionDescriptor.of(
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT,
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_LONG,
              ValueLayout.JAVA_INT);
      return linker.downcallHandle(
          linker.defaultLookup().findOrThrow("syscall"),
          descriptor,
          Linker.Option.firstVariadicArg(1));
    }
  }

  /**
   * The time limit of the current sleep, in seconds and nanoseconds; allocated with the first
   * sleep.
   */
  private @Nullable MemorySegment limit;

  /** Creates an instance for the sleeps of one thread; nothing is linked yet. */
  public Futex() {}

  /** Returns whether this system has a futex, which may not be linked yet. */
  public static boolean isAvailable() {
    return NUMBER >= 0;
  }

  /** Returns whether the futex can already be used. */
  public static boolean isLinked() {
    return isLinked;
  }

  /** Begins to link the futex if this system has one and linking has not begun. */
  public static void link() {
    if (isAvailable() && LINKING.compareAndSet(false, true)) {
      CompletableFuture<Void> _ = CompletableFuture.runAsync(() -> isLinked = Linked.CALL != null);
    }
  }

  /**
   * Returns to a caller about to sleep or to wake others whether the futex can already be used;
   * links it after enough calls.
   */
  public static boolean isReady() {
    if (isLinked) {
      return true;
    }
    if (++callsBefore == CALLS_BEFORE_LINKING) {
      link();
    }
    return false;
  }

  private static long number() {
    if (!System.getProperty("os.name", "").equals("Linux")
        || !Futex.class.getModule().isNativeAccessEnabled()
        || ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
      return -1;
    }
    return NUMBERS.getOrDefault(System.getProperty("os.arch", ""), -1L);
  }

  /**
   * Sleeps until a thread wakes the sleepers on a word, for a limited time; does not sleep if the
   * word has changed. May return spuriously; an interrupt does not end the sleep.
   *
   * @param address the address of the word; only its low 32 bits count
   * @param seen the value that the word had
   * @param nanos the maximum time to sleep
   */
  public void await(long address, long seen, long nanos) {
    MemorySegment time = limit;
    if (time == null) {
      time = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
      limit = time;
    }
    time.set(ValueLayout.JAVA_LONG, 0, nanos / SECOND);
    time.set(ValueLayout.JAVA_LONG, Long.BYTES, nanos % SECOND);
    call(address, WAIT, (int) seen, time);
  }

  /**
   * Wakes all threads that sleep on a word.
   *
   * @param address the address of the word
   */
  public static void wake(long address) {
    call(address, WAKE, Integer.MAX_VALUE, MemorySegment.NULL);
  }

  private static void call(long address, int operation, int value, MemorySegment time) {
    try {
      long ignored = (long) Linked.CALL.invokeExact(NUMBER, address, operation, value, time, 0L, 0);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
