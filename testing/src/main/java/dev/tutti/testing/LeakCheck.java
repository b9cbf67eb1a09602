package dev.tutti.testing;

import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;

/**
 * A check, after the last test of a class, that its worlds left no threads and no shared memory.
 * JUnit closes it with the class.
 */
@SuppressWarnings("deprecation") // JUnit before 5.13 closes nothing else
final class LeakCheck implements AutoCloseable, ExtensionContext.Store.CloseableResource {
  /*
   * Threads are found by the thread group that each world gets, so classes that run at the same
   * time do not see each other's threads. Shared memory belongs only to the process: after the last
   * of the classes that overlap in time has ended, it is compared with what was there when the
   * first of them began.
   */
  /** The JUnit parameter that sets for how many seconds memory may still be freed, 20 if unset. */
  static final String GRACE_SECONDS = "dev.tutti.testing.graceSeconds";

  private static final Object LOCK = new Object();
  private static final TreeSet<String> OVERLAPPING = new TreeSet<>();
  private static int active;
  private static List<String> sharedMemoryBefore = List.of();

  private final ConcurrentLinkedQueue<ThreadGroup> threads = new ConcurrentLinkedQueue<>();

  private final AtomicBoolean closed = new AtomicBoolean();

  private final Duration grace;

  private LeakCheck(Duration grace) {
    this.grace = grace;
  }

  private static LeakCheck begin(Class<?> testClass, Duration grace) {
    synchronized (LOCK) {
      if (active == 0) {
        OVERLAPPING.clear();
        sharedMemoryBefore = SharedMemoryFiles.ofThisProcess();
      }
      active++;
      OVERLAPPING.add(testClass.getName());
    }
    return new LeakCheck(grace);
  }

  /** Returns the check of the test class, which is created with its first world. */
  static LeakCheck of(ExtensionContext context) {
    ExtensionContext ofClass = context;
    while (ofClass.getTestMethod().isPresent()) {
      ofClass = ofClass.getParent().orElseThrow();
    }
    Class<?> testClass = context.getRequiredTestClass();
    Duration grace =
        Duration.ofSeconds(
            context.getConfigurationParameter(GRACE_SECONDS, Integer::valueOf).orElse(20));
    return ofClass
        .getStore(Namespace.create(LeakCheck.class))
        .getOrComputeIfAbsent(LeakCheck.class, key -> begin(testClass, grace), LeakCheck.class);
  }

  /** Returns a group for the threads of a world, which must be empty at the end. */
  ThreadGroup newThreads(String name) {
    ThreadGroup group = new ThreadGroup(name);
    threads.add(group);
    return group;
  }

  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    try {
      for (ThreadGroup group : threads) {
        Leaks.assertNoThreads(group);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted while the threads of the worlds were ending", e);
    } finally {
      synchronized (LOCK) {
        active--;
        if (active == 0) {
          SharedMemoryFiles.assertNoneBeside(sharedMemoryBefore, OVERLAPPING, grace);
        }
      }
    }
  }
}
