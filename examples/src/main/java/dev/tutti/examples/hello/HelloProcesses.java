package dev.tutti.examples.hello;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * A program that adds the rank numbers of ranks that are processes (example 02).
 *
 * <p>A launcher starts this program once for each rank; environment variables give it its rank
 * ({@code RANK}, {@code WORLD_SIZE}) and where the ranks meet ({@code MASTER_ADDR}, {@code
 * MASTER_PORT}). The backend is the one on the class path.
 */
public final class HelloProcesses {
  private HelloProcesses() {}

  /**
   * Runs one rank of the example.
   *
   * @param args none
   */
  public static void main(String[] args) {
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor sum = Tensor.of((float) group.rank());
      group.allReduce(sum);
      System.out.println(
          "rank %d of %d on %s: the rank numbers add up to %.0f"
              .formatted(
                  group.rank(), group.size(), group.backends().get("cpu"), sum.getDouble(0)));
    }
  }
}
