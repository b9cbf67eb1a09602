package dev.tutti.testing;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;

/**
 * Says which backend a contract suite tests, and how. Only {@link #provider()} has to be given; the
 * memory methods are for backends whose tensors are not in host memory. All methods are called from
 * several threads at once.
 */
public interface ContractSubject {
  /** Returns the backend under test; asked more than once. */
  BackendProvider provider();

  /** Returns the numbers of ranks to test with. */
  default int[] worldSizes() {
    return new int[] {1, 2, 3, 4};
  }

  /** Returns the deadline of one test body on all ranks. */
  default Duration timeout() {
    return Duration.ofSeconds(30);
  }

  /** Returns the settings of the groups. */
  default Settings settings() {
    return Settings.fromEnvironment();
  }

  /**
   * Returns what the groups can do: what the provider declares, unless the settings take something
   * away.
   */
  default Capabilities capabilities() {
    return provider().capabilities();
  }

  /**
   * Allocates zeroed memory where the backend wants its tensors.
   *
   * @param dtype element type
   * @param shape sizes in elements
   */
  default Tensor allocate(DType dtype, long... shape) {
    return Tensor.allocate(dtype, shape);
  }

  /**
   * Copies host memory to where the backend wants it.
   *
   * @param host contiguous, on the host
   * @param target contiguous, made by {@link #allocate}
   */
  default void copyIn(Tensor host, Tensor target) {
    target.copyFrom(host);
  }

  /**
   * Copies to host memory.
   *
   * @param source contiguous, made by {@link #allocate}
   * @return a contiguous tensor on the host
   */
  default Tensor copyOut(Tensor source) {
    return source.copy();
  }

  /**
   * Creates a subject of host tensors with the defaults of this interface.
   *
   * @param provider the backend under test
   */
  static ContractSubject of(BackendProvider provider) {
    return () -> provider;
  }
}
