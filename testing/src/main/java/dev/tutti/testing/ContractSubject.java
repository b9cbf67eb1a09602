package dev.tutti.testing;

import dev.tutti.Capabilities;
import dev.tutti.DType;
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

  /**
   * Returns the only rank of each world that this JVM has, or empty if it has all. With ranks in
   * several JVMs all run the same tests in the same order, {@link #options} says where the ranks of
   * each new world meet, and the parts of the suite are taken whose ranks need not see each other:
   * not those on aborts, barriers, closing, mismatches, symmetric memory, time-outs and works.
   */
  default OptionalInt onlyRank() {
    return OptionalInt.empty();
  }

  /** Returns the deadline of one test body on all ranks; that of its groups is half of it. */
  default Duration timeout() {
    return Duration.ofMinutes(2);
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
   * Tells whether AVG of real numbers divides the sum, so that of whole numbers only the division
   * rounds. One that divides what each rank brings, as NCCL does, rounds more often.
   */
  default boolean dividesTheSum() {
    return true;
  }

  /**
   * Tells whether ranks whose calls do not fit each other fail at once with a {@link
   * PeerMismatchException}. Where the ranks do not compare their calls, as on NCCL, they run into
   * their deadlines.
   */
  default boolean detectsMismatches() {
    return true;
  }

  /** Returns how the names of threads begin that serve the whole process and stay. */
  default List<String> sharedThreads() {
    return List.of();
  }

  /** Tells whether the tensors are in host memory. */
  default boolean isOnHost() {
    return true;
  }

  /**
   * Changes the options with which a rank joins, for example to give it a device of its own. Called
   * by the thread of the rank, whose number the options have.
   *
   * @param options with timeout, backend and settings
   */
  default GroupOptions options(GroupOptions options) {
    return options;
  }

  /**
   * Prepares the thread of a rank for a test body, for example makes a device the current one.
   *
   * @param rank whose thread calls
   * @return closed by the same thread after the body
   */
  default Registration enter(int rank) {
    return () -> {};
  }

  /**
   * Allocates zeroed memory where the backend wants its tensors. Called by the thread of a rank or
   * one that it started.
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
