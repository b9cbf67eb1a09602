package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.HashStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs ranks as threads that share a store. */
final class Ranks {
  private static final int HANGS_SECONDS = 250;

  private Ranks() {}

  /** The code that a rank runs. */
  interface Body<T> {
    T run(StoreExchange exchange) throws Exception;
  }

  /** Returns the deadline of what must happen; it only guards against hanging. */
  static long soon() {
    return System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
  }

  static long inMillis(long millis) {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
  }

  /** Waits for what another rank does; the limit only guards against hanging. */
  static void await(CountDownLatch latch) throws InterruptedException {
    assertThat(latch.await(HANGS_SECONDS, TimeUnit.SECONDS)).isTrue();
  }

  /** Runs all ranks and returns the result of each; throws the first failure. */
  static <T> List<T> run(HashStore store, int size, Body<T> body) throws Exception {
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      List<Future<T>> futures = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        StoreExchange exchange = new StoreExchange(store, "test", r, size);
        Callable<T> call = () -> body.run(exchange);
        futures.add(threads.submit(call));
      }
      List<T> results = new ArrayList<>();
      for (Future<T> future : futures) {
        results.add(future.get(HANGS_SECONDS, TimeUnit.SECONDS));
      }
      return results;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    } catch (TimeoutException e) {
      throw new AssertionError("a rank hangs", e);
    }
  }
}
