package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Helpers with which the algorithms handle requests. */
public final class Flow {
  private static final long LARGE = 16 * 1024;

  private Flow() {}

  /**
   * Writes messages that are ready, before a computation that peers would otherwise wait for.
   *
   * @param transport the transport whose messages are written
   * @param bytes the number of bytes that the computation covers; a small one is not worth a write
   *     of its own
   */
  static void beforeWork(Endpoint transport, long bytes) {
    if (bytes >= LARGE) {
      transport.flush();
    }
  }

  /** Waits for one of several requests, if present, and removes it. */
  static void await(
      Endpoint transport, Operation operation, @Nullable Request[] requests, int index)
      throws Exception {
    Request request = requests[index];
    if (request != null) {
      requests[index] = null;
      transport.await(request, operation);
    }
  }

  /**
   * Waits for all requests that are present and removes them.
   *
   * @param transport the endpoint that began the requests
   * @param operation the operation whose deadline applies
   * @param requests the requests, some of which may be null
   */
  public static void awaitAll(Endpoint transport, Operation operation, @Nullable Request[] requests)
      throws Exception {
    for (int i = 0; i < requests.length; i++) {
      await(transport, operation, requests, i);
    }
  }

  /**
   * Returns the steps of a message whose receiver announces it only when the step begins: one more
   * trip unless the message is so short that it leaves at once.
   */
  static List<Step> steps(int distance, double bytes) {
    Step message = Step.network(distance, 1, 1, bytes);
    return bytes <= Endpoint.MOST_EARLY_BYTES
        ? List.of(message)
        : List.of(Step.network(distance, 1, 0, 0), message);
  }

  /** Returns the same steps for a message that the receiver combines with its own bytes. */
  static List<Step> reducingSteps(int distance, double bytes) {
    return steps(distance, bytes).stream()
        .map(step -> step.messages() == 0 ? step : step.reducing(bytes))
        .toList();
  }
}
