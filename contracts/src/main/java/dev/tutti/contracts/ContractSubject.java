package dev.tutti.contracts;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.Registration;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerMismatchException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;

/**
 * The backend that a contract suite tests, and how to test it. Only {@link #provider()} must be
 * implemented; the memory methods are for backends whose tensors are not in host memory. All
 * methods may be called from several threads at once.
 */
public interface ContractSubject {
  /** Returns the backend under test; called more than once. */
  BackendProvider provider();

  /** Returns the numbers of ranks to test with. */
  default int[] worldSizes() {
    return new int[] {1, 2, 3, 4};
  }

  /**
   * Returns the only rank of each world that is in this JVM, or empty if all of them are. If the
   * ranks are in several JVMs, all JVMs run the same tests in the same order, and {@link #options}
   * says where the ranks of each new world meet. Only the parts of the suite apply in which ranks
   * need not see each other: not those on aborts, barriers, closing, mismatches, symmetric memory,
   * timeouts and works.
   */
  default OptionalInt onlyRank() {
    return OptionalInt.empty();
  }

  /**
   * Returns the deadline of one test body on all ranks; its groups have half of that as their
   * deadline.
   */
  default Duration timeout() {
    return Duration.ofMinutes(2);
  }

  /** Returns the settings of the groups. */
  default Settings settings() {
    return Settings.fromEnvironment();
  }

  /**
   * Returns the capabilities of the groups: what the provider declares, unless the settings take
   * something away.
   */
  default Capabilities capabilities() {
    BackendProvider provider = provider();
    return provider.capabilities(
        isOnHost() ? Device.CPU.type() : provider.deviceTypes().iterator().next());
  }

  /**
   * Returns whether AVG divides a sum that neither overflows nor wraps, so that for whole numbers
   * only the division rounds. A backend that divides each rank's contribution, as NCCL does, rounds
   * more often.
   */
  default boolean dividesTheSum() {
    return true;
  }

  /**
   * Returns whether MIN and MAX are NaN where a rank's element is NaN. With NCCL they are that only
   * if the elements of all ranks are.
   */
  default boolean nanWins() {
    return true;
  }

  /**
   * Returns whether ranks whose calls do not match fail at once with a {@link
   * PeerMismatchException}. If the ranks do not compare their calls, as with NCCL, they run into
   * their deadlines.
   */
  default boolean detectsMismatches() {
    return true;
  }

  /** Returns the prefixes of the names of threads that serve the whole process and may stay. */
  default List<String> sharedThreads() {
    return List.of();
  }

  /** Returns whether the tensors are in host memory. */
  default boolean isOnHost() {
    return true;
  }

  /**
   * Changes the options with which a rank joins, for example to give it its own device. Called by
   * the rank's thread; the options contain the rank's number.
   *
   * @param options the options, with timeout, backend and settings
   */
  default GroupOptions options(GroupOptions options) {
    return options;
  }

  /**
   * Prepares a rank's thread for a test body, for example by making a device the current one.
   *
   * @param rank the rank whose thread makes the call
   * @return a registration that the same thread closes after the body
   */
  default Registration enter(int rank) {
    return () -> {};
  }

  /**
   * Allocates zeroed memory where the backend expects its tensors. Called by a rank's thread, or by
   * a thread that it started.
   *
   * @param dtype the element type
   * @param shape the sizes in elements
   */
  default Tensor allocate(DType dtype, long... shape) {
    return Tensor.allocate(dtype, shape);
  }

  /**
   * Copies host memory to where the backend expects it.
   *
   * @param host a contiguous tensor on the host
   * @param target a contiguous tensor that {@link #allocate} returned
   */
  default void copyIn(Tensor host, Tensor target) {
    target.copyFrom(host);
  }

  /**
   * Copies to host memory.
   *
   * @param source a contiguous tensor that {@link #allocate} returned
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
