package dev.tutti.testkit;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Rounds that several threads repeat until each has had one in which it allocated nothing. */
public final class FreeRounds {
  /*
   * Threads that contend for a lock allocate when they wait for it, which depends on the system. So
   * do the first rounds, for class loading and for buffers that grow. An object per operation leaves
   * no round free, however many there are.
   */
  /** The code that a thread runs repeatedly. */
  public interface Round {
    /** Runs once. */
    void run() throws Exception;
  }

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int ROUNDS = 200;
  private static final long SECONDS = 200;

  private final AtomicInteger allocating;
  private final CyclicBarrier barrier;
  private int rounds;
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
    over = allocating.get() == 0 || ++rounds == ROUNDS;
  }

  /**
   * Returns how many bytes the calling thread allocated in its best round, at most 200 rounds.
   *
   * @param round what to run in each round
   * @param helpers the ids of other threads whose allocations count as this thread's
   * @throws Exception what the round throws, or if another thread does not come to its end
   */
  public long leastBytes(Round round, long... helpers) throws Exception {
    long least = Long.MAX_VALUE;
    do {
      long before = bytes(helpers);
      round.run();
      long bytes = bytes(helpers) - before;
      if (bytes == 0 && least > 0) {
        allocating.decrementAndGet();
      }
      least = Math.min(least, bytes);
      barrier.await(SECONDS, TimeUnit.SECONDS);
    } while (!over);
    return least;
  }

  private static long bytes(long[] helpers) {
    long sum = THREADS.getCurrentThreadAllocatedBytes();
    for (long helper : helpers) {
      sum += THREADS.getThreadAllocatedBytes(helper);
    }
    return sum;
  }
}
