package dev.tutti.runtime.operation;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs user callbacks one after another, on a thread that exists only while there are callbacks.
 */
final class SerialCallbacks implements AutoCloseable {
  private final ExecutorService executor;

  SerialCallbacks(String threadName) {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> Thread.ofPlatform().daemon().name(threadName).unstarted(task),
            new ThreadPoolExecutor.DiscardPolicy());
    pool.allowCoreThreadTimeOut(true);
    executor = pool;
  }

  void add(Runnable callback) {
    executor.execute(callback);
  }

  @Override
  public void close() {
    executor.shutdown();
  }
}
