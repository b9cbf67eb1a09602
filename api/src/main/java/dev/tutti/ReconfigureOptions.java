package dev.tutti;

import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Options of {@link ProcessGroup#reconfigure(ReconfigureOptions)}; those of the member that calls
 * it first count. Immutable; each {@code with} method returns a changed copy.
 */
@Incubating
public final class ReconfigureOptions {
  /** At least one member continues, and all that wait to join are taken. */
  public static final ReconfigureOptions DEFAULT =
      new ReconfigureOptions(1, Integer.MAX_VALUE, 0, Integer.MAX_VALUE, null);

  private final int fewest;
  private final int most;
  private final int fewestJoining;
  private final int mostJoining;
  private final @Nullable Duration timeout;

  private ReconfigureOptions(
      int fewest, int most, int fewestJoining, int mostJoining, @Nullable Duration timeout) {
    this.fewest = fewest;
    this.most = most;
    this.fewestJoining = fewestJoining;
    this.mostJoining = mostJoining;
    this.timeout = timeout;
  }

  /**
   * Sets how many members the next generation has.
   *
   * @param fewest the least number, at least 1
   * @param most the largest number, at least {@code fewest}; members after that are left out
   */
  public ReconfigureOptions withSize(int fewest, int most) {
    if (fewest < 1 || most < fewest) {
      throw new IllegalArgumentException("not a range of sizes: " + fewest + " to " + most);
    }
    return new ReconfigureOptions(fewest, most, fewestJoining, mostJoining, timeout);
  }

  /**
   * Sets how many processes join.
   *
   * @param fewest the least number, for which the members wait, at least 0
   * @param most the largest number, at least {@code fewest}; others keep waiting
   */
  public ReconfigureOptions withJoining(int fewest, int most) {
    if (fewest < 0 || most < fewest) {
      throw new IllegalArgumentException("not a range of numbers: " + fewest + " to " + most);
    }
    return new ReconfigureOptions(this.fewest, this.most, fewest, most, timeout);
  }

  /**
   * Sets how long members wait for each other, and then for the set-up.
   *
   * @param timeout the time, positive; by default that of the group
   */
  public ReconfigureOptions withTimeout(Duration timeout) {
    if (!timeout.isPositive()) {
      throw new IllegalArgumentException("timeout must be positive, not " + timeout);
    }
    return new ReconfigureOptions(fewest, most, fewestJoining, mostJoining, timeout);
  }

  /** Returns the least number of members. */
  public int fewest() {
    return fewest;
  }

  /** Returns the largest number of members. */
  public int most() {
    return most;
  }

  /** Returns the least number of processes that join. */
  public int fewestJoining() {
    return fewestJoining;
  }

  /** Returns the largest number of processes that join. */
  public int mostJoining() {
    return mostJoining;
  }

  /** Returns how long members wait for each other, if it was set. */
  public Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }
}
