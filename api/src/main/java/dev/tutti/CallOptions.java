package dev.tutti;

import dev.tutti.spi.Printable;
import java.io.InvalidObjectException;
import java.io.Serializable;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The options that every operation of a {@link ProcessGroup} takes as its last argument: a
 * deadline, whether the call is asynchronous, and the requested algorithm. Immutable; each {@code
 * with} method returns a changed copy. Options that were serialized become equal ones, and {@link
 * #DEFAULT} and {@link #ASYNC} themselves.
 */
public final class CallOptions implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The group's deadline and a synchronous call, which returns when the operation is done. */
  public static final CallOptions DEFAULT = new CallOptions(null, false, null, false);

  /** The group's deadline and an asynchronous call, which returns at once. */
  public static final CallOptions ASYNC = DEFAULT.withAsync();

  private final @Nullable Duration timeout;
  private final boolean async;
  private final @Nullable String algorithm;
  private final boolean besideComputation;

  private CallOptions(
      @Nullable Duration timeout,
      boolean async,
      @Nullable String algorithm,
      boolean besideComputation) {
    this.timeout = timeout;
    this.async = async;
    this.algorithm = algorithm;
    this.besideComputation = besideComputation;
  }

  /**
   * Returns {@link #DEFAULT} with a deadline.
   *
   * @param timeout the time allowed from the call; must be positive
   * @throws IllegalArgumentException if the timeout is not positive
   */
  public static CallOptions timeout(Duration timeout) {
    return DEFAULT.withTimeout(timeout);
  }

  /**
   * Returns these options with another deadline.
   *
   * @param timeout the time allowed from the call; must be positive
   * @throws IllegalArgumentException if the timeout is not positive
   */
  public CallOptions withTimeout(Duration timeout) {
    if (timeout == null || !timeout.isPositive()) {
      throw new IllegalArgumentException("timeout must be positive, but is " + timeout);
    }
    return new CallOptions(timeout, async, algorithm, besideComputation);
  }

  /** Returns these options for an asynchronous call, which returns at once. */
  public CallOptions withAsync() {
    return new CallOptions(timeout, true, algorithm, besideComputation);
  }

  /**
   * Returns these options for an all-reduce of one dense tensor with the given algorithm, one of
   * {@link Capabilities#algorithms()} (c10d: {@code AllReduceAlgo}). The call throws {@link
   * UnsupportedOperationException} with the reason if the backend cannot use the algorithm, for
   * this tensor or at all, and for every other operation; an asynchronous call may leave that to
   * {@link Work#await()}. It does so on all ranks alike, and leaves the tensors and the group as
   * they were.
   *
   * @param algorithm the algorithm's name, the same on all ranks
   */
  public CallOptions withAlgorithm(String algorithm) {
    return new CallOptions(
        timeout, async, Objects.requireNonNull(algorithm, "algorithm"), besideComputation);
  }

  /**
   * Returns these options for an all-reduce beside which the device computes, as it does while a
   * backward pass continues: a backend that has an algorithm which leaves the device to the
   * computation then prefers it. All ranks must request it alike.
   */
  public CallOptions withComputationBeside() {
    return new CallOptions(timeout, async, algorithm, true);
  }

  /** Returns the time allowed from the call, or empty to use the group's deadline. */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }

  /** Returns whether the call returns at once rather than when the operation is done. */
  public boolean isAsync() {
    return async;
  }

  /** Returns the algorithm requested for an all-reduce, or empty to let the backend choose. */
  public Optional<String> algorithm() {
    return Optional.ofNullable(algorithm);
  }

  /** Returns whether the device computes beside the operation. */
  public boolean isBesideComputation() {
    return besideComputation;
  }

  private Object readResolve() throws InvalidObjectException {
    if (timeout != null && !timeout.isPositive()) {
      throw new InvalidObjectException("call options with timeout " + timeout);
    }
    return equals(DEFAULT) ? DEFAULT : equals(ASYNC) ? ASYNC : this;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof CallOptions o
        && Objects.equals(timeout, o.timeout)
        && async == o.async
        && Objects.equals(algorithm, o.algorithm)
        && besideComputation == o.besideComputation;
  }

  @Override
  public int hashCode() {
    return Objects.hash(timeout, async, algorithm, besideComputation);
  }

  @Override
  public String toString() {
    return "CallOptions[timeout="
        + (timeout == null ? "the group's" : Printable.time(timeout))
        + ", async="
        + async
        + ", algorithm="
        + (algorithm == null ? "the backend's" : algorithm)
        + (besideComputation ? ", beside computation" : "")
        + "]";
  }
}
