package dev.tutti.cuda.nccl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.tutti.cuda.access.ExitHook;
import dev.tutti.cuda.driver.DeviceContext;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Lets the process end while NCCL waits for other ranks. One guard stands for one communicator; it
 * is open from the communicator's beginning until its teardown is over.
 *
 * <p>A JVM that shuts down calls the C library's {@code exit}, and what NCCL registered there waits
 * for its kernels. A kernel that waits for a rank that will not come never ends. Nor would the
 * process then: not after a signal, not after {@link System#exit}, and not after an exception in
 * {@code main}. Its sockets would stay open, so the other ranks would not notice either. Therefore,
 * if a guard is open when the JVM shuts down, the devices get a few seconds for the work under way.
 * Then {@code exit} writes what C streams hold and ends the process without calling what was
 * registered before. The system frees the device's memory, as it does after a kill.
 */
final class ExitGuard {
  private static final System.Logger LOG = System.getLogger(ExitGuard.class.getName());
  private static final Duration PATIENCE = Duration.ofSeconds(3);
  private static final Set<ExitGuard> OPEN = ConcurrentHashMap.newKeySet();

  private static volatile boolean isOver = !ExitHook.add(ExitGuard::shutDown);

  private final DeviceContext context;

  private ExitGuard(DeviceContext context) {
    this.context = context;
  }

  /** Opens a guard for a communicator that works in a context. */
  static ExitGuard open(DeviceContext context) {
    ExitGuard guard = new ExitGuard(context);
    OPEN.add(guard);
    if (isOver) {
      skipExitHandlers();
    }
    return guard;
  }

  /** Closes the guard; the communicator has no more work on the device. */
  void close() {
    OPEN.remove(this);
  }

  private static void shutDown() {
    try {
      awaitWork(System.nanoTime() + PATIENCE.toNanos());
    } catch (InterruptedException | OutOfMemoryError e) {
      LOG.log(Level.DEBUG, "the devices get no time for the work under way", e);
    }
    isOver = true;
    if (!OPEN.isEmpty()) {
      skipExitHandlers();
    }
  }

  /** Waits for what the devices are doing; not in this thread, since a driver may hang. */
  private static void awaitWork(long deadlineNanos) throws InterruptedException {
    List<Thread> waits = new ArrayList<>();
    for (DeviceContext context : OPEN.stream().map(guard -> guard.context).distinct().toList()) {
      String name = "tutti-cuda-idle-" + context.device();
      waits.add(Thread.ofPlatform().daemon().name(name).start(() -> awaitWork(context)));
    }
    for (Thread wait : waits) {
      wait.join(Duration.ofNanos(Math.max(0, deadlineNanos - System.nanoTime())));
    }
  }

  private static void awaitWork(DeviceContext context) {
    try {
      context.enter();
      context.driver().contexts().synchronize();
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "the device is broken, so its work has ended", e);
    }
  }

  /** Makes {@code exit} begin by flushing C streams and then end the process at once. */
  private static void skipExitHandlers() {
    Linker linker = Linker.nativeLinker();
    SymbolLookup library = linker.defaultLookup();
    try {
      // The last one that is registered is called first.
      int _ =
          (int)
              linker
                  .downcallHandle(
                      library.findOrThrow("on_exit"),
                      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS))
                  .invokeExact(library.findOrThrow("_exit"), MemorySegment.NULL);
      int _ =
          (int)
              linker
                  .downcallHandle(
                      library.findOrThrow("__cxa_atexit"),
                      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS))
                  .invokeExact(
                      library.findOrThrow("fflush"), MemorySegment.NULL, MemorySegment.NULL);
    } catch (Throwable e) {
      LOG.log(Level.DEBUG, "NCCL may keep this process from ending", e);
    }
  }
}
