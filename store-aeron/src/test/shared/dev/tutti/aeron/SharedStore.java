package dev.tutti.aeron;

import dev.tutti.Store;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Empties a store for the next test when starting one per test is too expensive. */
public final class SharedStore {
  private static final int THREADS = 64;

  private SharedStore() {}

  /** Deletes all keys, many at a time; tests must use another prefix for leftover queues. */
  public static void deleteAll(Store store) {
    List<String> keys = store.listKeys();
    try (ExecutorService pool = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int thread = 0; thread < THREADS; thread++) {
        int first = thread;
        var _ =
            pool.submit(
                () -> {
                  for (int i = first; i < keys.size(); i += THREADS) {
                    store.deleteKey(keys.get(i));
                  }
                });
      }
    }
  }
}
