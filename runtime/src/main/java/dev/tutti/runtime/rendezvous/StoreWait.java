package dev.tutti.runtime.rendezvous;

import dev.tutti.GroupClosedException;
import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.AnswerTimes;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.spi.Bootstrap;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Waits for the keys of other ranks of a group, but only as long as the group lives. */
public final class StoreWait {
  private static final Duration SLICE = Duration.ofMillis(100);

  private final GroupIdentity group;
  private final Failures failures;
  private final Store store;
  private final Duration answer;
  private final Time time;

  public StoreWait(GroupIdentity group, Failures failures, Store store) {
    this.group = group;
    this.failures = failures;
    this.store = store;
    this.time = group.time();
    this.answer = AnswerTimes.of(group.settings()).answer();
  }

  /**
   * Makes a call to the store that has no deadline of its own.
   *
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @throws StoreSilentException if the call does not end by the deadline; a server gets at least
   *     the time of an answer
   */
  public <T> T call(long deadlineNanos, Supplier<T> call) {
    return call(group.name(), group.rank(), store, answerBy(deadlineNanos), time, call);
  }

  /** Makes a call to a store that has no deadline of its own, for a rank of a group. */
  static <T> T call(
      String group, int rank, Store store, Duration limit, Time time, Supplier<T> call) {
    try {
      return BoundedCalls.call(time, "tutti-ask-" + group + "-" + rank, limit, call::get);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new StoreSilentException(
          "rank %d of group %s: %s does not answer within %s"
              .formatted(rank, group, store, Printable.time(limit)),
          e);
    }
  }

  /** Returns how long a server may take to answer by a deadline: at least the time of an answer. */
  public Duration answerBy(long deadlineNanos) {
    return answerBy(deadlineNanos, answer, time);
  }

  /** Returns how long a server may take to answer by a deadline: at least a given time. */
  static Duration answerBy(long deadlineNanos, Duration least, Time time) {
    Duration left = time.left(deadlineNanos);
    return left.compareTo(least) < 0 ? least : left;
  }

  /**
   * Waits until keys exist.
   *
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @return whether the keys exist
   * @throws TuttiException if the group failed or was closed in the meantime, or the store failed,
   *     or was silent at the deadline
   */
  public boolean await(List<String> keys, long deadlineNanos) {
    while (true) {
      Duration left = time.left(deadlineNanos);
      try {
        store.await(keys, left.compareTo(SLICE) < 0 ? left : SLICE);
        return true;
      } catch (StoreTimeoutException e) {
        failures.throwAgreed();
        if (failures.isGone()) {
          throw new GroupClosedException(
              "group %s was closed on rank %d while it waited for other ranks"
                  .formatted(group.name(), group.rank()));
        }
        if (deadlineNanos - time.nanoTime() > 0) {
          continue;
        }
        if (e instanceof StoreSilentException) {
          throw e;
        }
        if (left.isZero()) {
          return false;
        }
      }
    }
  }

  /**
   * Waits for a key of each of several ranks.
   *
   * @param prefix the part of the key before the rank
   * @param first the lowest rank to wait for; all ranks up to the last follow
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @return the ranks that did not come
   */
  public List<Integer> awaitRanks(String prefix, int first, long deadlineNanos) {
    return await(keys(prefix, first), deadlineNanos)
        ? List.of()
        : IntStream.range(first, group.size())
            .filter(r -> !Bootstrap.isThere(store, prefix + r))
            .boxed()
            .toList();
  }

  /** Returns a key for each rank, starting with a given one. */
  public List<String> keys(String prefix, int first) {
    return IntStream.range(first, group.size()).mapToObj(r -> prefix + r).toList();
  }
}
