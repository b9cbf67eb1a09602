package dev.tutti.checkpoint;

import dev.tutti.GroupOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Options of {@link Elastic#run}, the same on all ranks. Immutable; each {@code with} method
 * returns a changed copy.
 */
public final class ElasticOptions {
  /** Any number of ranks, from one on, without checkpoints. */
  public static final ElasticOptions DEFAULT =
      new ElasticOptions(
          GroupOptions.DEFAULT, 1, Integer.MAX_VALUE, null, Duration.ofMinutes(10), null, 0);

  private final GroupOptions group;
  private final int fewest;
  private final int most;
  private final @Nullable Duration timeout;
  private final Duration patience;
  private final @Nullable Path folder;
  private final long every;

  private ElasticOptions(
      GroupOptions group,
      int fewest,
      int most,
      @Nullable Duration timeout,
      Duration patience,
      @Nullable Path folder,
      long every) {
    this.group = group;
    this.fewest = fewest;
    this.most = most;
    this.timeout = timeout;
    this.patience = patience;
    this.folder = folder;
    this.every = every;
  }

  /**
   * Sets how this process joins the job, and joins it again after the others went on without it.
   *
   * @param options the options of {@code ProcessGroup.init}
   */
  public ElasticOptions withGroup(GroupOptions options) {
    Objects.requireNonNull(options, "options");
    return new ElasticOptions(options, fewest, most, timeout, patience, folder, every);
  }

  /**
   * Sets how many ranks there are.
   *
   * @param newFewest the least number, at least 1; fewer wait for others
   * @param newMost the largest number, at least {@code newFewest}
   */
  public ElasticOptions withSize(int newFewest, int newMost) {
    if (newFewest < 1 || newMost < newFewest) {
      throw new IllegalArgumentException(
          "the least number of ranks must be from 1 to the largest, not %d to %d"
              .formatted(newFewest, newMost));
    }
    return new ElasticOptions(group, newFewest, newMost, timeout, patience, folder, every);
  }

  /**
   * Sets how long ranks wait, when members change, for one of them that is silent but not known to
   * be lost.
   *
   * @param newTimeout the time, positive; by default that of the group
   */
  public ElasticOptions withTimeout(Duration newTimeout) {
    requirePositive("timeout", newTimeout);
    return new ElasticOptions(group, fewest, most, newTimeout, patience, folder, every);
  }

  /**
   * Sets how long ranks wait for others if they are too few, try again if a set-up fails, and wait
   * for the folder of checkpoints if a stopped rank holds it.
   *
   * @param newPatience the time, positive; by default 10 minutes
   */
  public ElasticOptions withPatience(Duration newPatience) {
    requirePositive("patience", newPatience);
    return new ElasticOptions(group, fewest, most, timeout, newPatience, folder, every);
  }

  /**
   * Sets where checkpoints are, from which the ranks continue if no rank has the state.
   *
   * @param newFolder the folder, on storage that all hosts share
   * @param steps after how many steps the ranks save one, at least 1
   */
  public ElasticOptions withCheckpoints(Path newFolder, long steps) {
    Objects.requireNonNull(newFolder, "newFolder");
    if (steps < 1) {
      throw new IllegalArgumentException("steps must be at least 1, not " + steps);
    }
    return new ElasticOptions(group, fewest, most, timeout, patience, newFolder, steps);
  }

  private static void requirePositive(String what, Duration given) {
    if (!given.isPositive()) {
      throw new IllegalArgumentException(what + " must be positive, not " + given);
    }
  }

  GroupOptions group() {
    return group;
  }

  int fewest() {
    return fewest;
  }

  int most() {
    return most;
  }

  Optional<Duration> timeout() {
    return Optional.ofNullable(timeout);
  }

  Duration patience() {
    return patience;
  }

  @Nullable Path folder() {
    return folder;
  }

  long every() {
    return every;
  }
}
