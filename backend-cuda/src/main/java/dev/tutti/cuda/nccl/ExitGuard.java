package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Lets the process end while NCCL waits for other ranks. One guard stands for one group; it is open
 * as long as the group may have work on its device.
 *
 * <p>Every JVM ends in the C library's {@code exit}, and what NCCL registered there waits for its
 * kernels. A kernel that waits for a rank that will not come never ends. Nor would the process
 * then: not after a signal, not after {@link System#exit}, and not after an exception in {@code
 * main}. Its sockets would stay open, so the other ranks would not notice either. Therefore, if a
 * guard is open when the JVM shuts down, devices get a few seconds for the work under way. Then
 * {@code exit} ends the process without calling what was registered before, and the system frees
 * the device's memory, as it does after a kill.
 */
final class ExitGuard implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(ExitGuard.class.getName());
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(3);
  private static final Set<ExitGuard> OPEN = ConcurrentHashMap.newKeySet();

  static {
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(ExitGuard::shutDown, "tutti-cuda-exit"));
    } catch (IllegalStateException e) {
      LOG.log(Level.DEBUG, "the process is ending already", e);
    }
  }

  private final CudaDevice device;

  private ExitGuard(CudaDevice device) {
    this.device = device;
  }

  /** Opens a guard for a group that works on a device. */
  static ExitGuard open(CudaDevice device) {
    ExitGuard guard = new ExitGuard(device);
    OPEN.add(guard);
    return guard;
  }

  /** Closes the guard; the group has no more work on the device. */
  @Override
  public void close() {
    OPEN.remove(this);
  }

  private static void shutDown() {
    if (OPEN.isEmpty()) {
      return;
    }
    skipExitHandlers();
    long until = System.nanoTime() + PATIENCE_NANOS;
    OPEN.stream().map(guard -> guard.device).distinct().forEach(d -> access().awaitAll(d, until));
  }

  /** Registers the system call that ends the process as the first thing that {@code exit} calls. */
  private static void skipExitHandlers() {
    SymbolLookup library = Linker.nativeLinker().defaultLookup();
    try {
      int _ =
          (int)
              Linker.nativeLinker()
                  .downcallHandle(
                      library.findOrThrow("on_exit"),
                      FunctionDescriptor.of(
                          ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS))
                  .invokeExact(library.findOrThrow("_exit"), MemorySegment.NULL);
    } catch (Throwable e) {
      LOG.log(Level.DEBUG, "NCCL may keep this process from ending", e);
    }
  }
}
