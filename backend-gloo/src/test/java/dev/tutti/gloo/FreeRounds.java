package dev.tutti.gloo;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Repeats a round of several threads until each has had one in which it allocated nothing.
 *
 * <p>What happens once, such as the loading of a class, or until the compiler is done, or where two
 * threads meet at a lock, is no matter of the steady state. An object for each operation is: then
 * no round is free, however many there are.
 */
public final class FreeRounds {
  /** What a thread does again and again. */
  public interface Round {
    /** Runs once. */
    void run() throws Exception;
  }

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final long NANOS = TimeUnit.SECONDS.toNanos(20);

  private final AtomicInteger allocating;
  private final CyclicBarrier barrier;
  private long rounds;
  private long begun;
  private volatile boolean over;

  /**
   * Creates the rounds of some threads, each of which calls {@link #leastBytes}.
   *
   * @param threads how many
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
    over = allocating.get() == 0 || now - begun > NANOS;
  }

  /** Returns how many bytes the calling thread allocated in the best of its rounds. */
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
      barrier.await(60, TimeUnit.SECONDS);
    } while (!over);
    return least;
  }
}
