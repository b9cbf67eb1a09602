package dev.tutti.gloo;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A round that several threads repeat until each has had one in which it allocated nothing.
 *
 * <p>Allocations that happen once do not belong to the steady state: for example those of class
 * loading, those before the compiler has finished, or those where two threads contend for a lock.
 * An object per operation does: then no round is free of allocations, however many there are.
 */
public final class FreeRounds {
  /** The code that a thread runs repeatedly. */
  public interface Round {
    /** Runs once. */
    void run() throws Exception;
  }

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final long SECONDS = 200;

  private final AtomicInteger allocating;
  private final CyclicBarrier barrier;
  private long rounds;
  private long begun;
  private volatile boolean over;

  /**
   * Creates the rounds of some threads, each of which calls {@link #leastBytes}.
   *
   * @param threads the number of threads
   */
  public FreeRounds(int threads) {
    allocating = new AtomicInteger(threads);
    barrier = new CyclicBarrier(threads, this::roundIsOver);
  }

  private void roundIsOver() {
    long now = System.nanoTime();
    if (rounds++ == 0) {
      begun = now;
    }
    over = allocating.get() == 0 || now - begun > TimeUnit.SECONDS.toNanos(SECONDS);
  }

  /** Returns how many bytes the calling thread allocated in its best round. */
  public long leastBytes(Round round) throws Exception {
    long least = Long.MAX_VALUE;
    do {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      round.run();
      long bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
      if (bytes == 0 && least > 0) {
        allocating.decrementAndGet();
      }
      least = Math.min(least, bytes);
      barrier.await(SECONDS, TimeUnit.SECONDS);
    } while (!over);
    return least;
  }
}
