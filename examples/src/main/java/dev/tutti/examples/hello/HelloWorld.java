package dev.tutti.examples.hello;

import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;

/**
 * A program that adds the rank numbers of four ranks that are threads of this JVM (example 01).
 *
 * <p>Nothing has to be started or configured, which makes this the way to try out code, and to test
 * it.
 */
public final class HelloWorld {
  private HelloWorld() {}

  /**
   * Runs the example.
   *
   * @param args none
   */
  public static void main(String[] args) {
    ThreadedWorld.run(
        4,
        group -> {
          Tensor sum = Tensor.of((float) group.rank());
          group.allReduce(sum);
          System.out.println(
              "rank %d of %d: the rank numbers add up to %.0f"
                  .formatted(group.rank(), group.size(), sum.getDouble(0)));
        });
  }
}
