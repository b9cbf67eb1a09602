package dev.tutti.runtime.group;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** Counts what calls allocate, which does not depend on how far they are compiled. */
public final class Allocations {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int CALLS = 20_000;

  private Allocations() {}

  /**
   * Returns how many bytes a call allocates on its thread on average, rounded down. This does not
   * count as many calls before, in which buffers grow; an object in each tenth call shows.
   *
   * @param call what to run on the calling thread
   */
  public static long perCall(Runnable call) {
    run(call);
    long before = THREADS.getCurrentThreadAllocatedBytes();
    run(call);
    return (THREADS.getCurrentThreadAllocatedBytes() - before) / CALLS;
  }

  private static void run(Runnable call) {
    for (int i = 0; i < CALLS; i++) {
      call.run();
    }
  }
}
