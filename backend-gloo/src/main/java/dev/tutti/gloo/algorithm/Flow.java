package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/** Holds what the algorithms share in handling requests. */
final class Flow {
  private static final long LARGE = 16 * 1024;

  private Flow() {}

  /**
   * Writes what is ready before a computation that peers would have to wait for.
   *
   * @param transport whose messages
   * @param bytes what the computation is over; a small one is not worth a write of its own
   */
  static void beforeWork(Endpoint transport, long bytes) {
    if (bytes >= LARGE) {
      transport.flush();
    }
  }

  /** Waits for one of several requests, if it is there, and takes it away. */
  static void await(
      Endpoint transport, Operation operation, @Nullable Request[] requests, int index)
      throws Exception {
    Request request = requests[index];
    if (request != null) {
      requests[index] = null;
      transport.await(request, operation);
    }
  }

  /** Waits for all requests that are there and takes them away. */
  static void awaitAll(Endpoint transport, Operation operation, @Nullable Request[] requests)
      throws Exception {
    for (int i = 0; i < requests.length; i++) {
      await(transport, operation, requests, i);
    }
  }
}
