package dev.tutti.runtime.rendezvous;

import dev.tutti.CollectiveException;
import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.Failures;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.failure.SetUpFailure;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/** Checks whether all ranks of a group make the same call for a new group. */
public final class RankAgreement {
  /*
   * The first rank to come publishes its call by compare-and-set, whose result shows the others
   * what is there. This costs one round trip for each rank, and no rank waits. A rank that gave
   * another list reports a failure of the new group. The ranks that agreed on a list are notified
   * through that failure while they wait in its set-up, or when they already have the group. A rank
   * that called another method fails the group that is divided, since the others may wait in that
   * method for this rank. The value is "RANK INDEX CALL": the rank that published it, that rank's
   * index in the list or -1, and the list, or the method's name if the method takes no list.
   */
  private final GroupIdentity group;
  private final Failures failures;
  private final JobMonitor monitor;
  private final Store store;

  public RankAgreement(GroupIdentity group, Failures failures, JobMonitor monitor, Store store) {
    this.group = group;
    this.failures = failures;
    this.monitor = monitor;
    this.store = store;
  }

  /**
   * Compares a list with the one that the first rank gave.
   *
   * @param name the name of the new group
   * @param ranks the ranks of the new group, sorted
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @throws CollectiveException if the lists differ, naming both, or another method was called
   */
  public void requireList(String name, List<Integer> ranks, long deadlineNanos) {
    String own = text(ranks);
    int index = ranks.indexOf(group.rank());
    String[] first = agree(name, OpType.SUBGROUP, index, own, deadlineNanos);
    if (!first[2].equals(own)) {
      throw refuse(name, Integer.parseInt(first[0]), Integer.parseInt(first[1]), first[2], own);
    }
  }

  /**
   * Compares the method that this rank called with the one that the first rank called.
   *
   * @param name the name of the new group
   * @param method the method, which takes no list
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @throws CollectiveException if they differ, naming both
   */
  public void requireMethod(String name, String method, long deadlineNanos) {
    String[] _ = agree(name, OpType.SPLIT, -1, method, deadlineNanos);
  }

  /** Returns the rank, index and call of the first rank, which called the same method. */
  private String[] agree(String name, OpType type, int index, String own, long deadlineNanos) {
    String value = group.rank() + " " + index + " " + own;
    Store.Swap swap =
        new StoreWait(group, failures, store)
            .call(
                deadlineNanos,
                () ->
                    store.compareSet(
                        "subgroup/" + name, null, value.getBytes(StandardCharsets.UTF_8)));
    byte[] there = swap.value();
    String[] first =
        (swap.stored() || there == null ? value : Printable.decode(there)).split(" ", 3);
    if (!methodOf(first[2]).equals(methodOf(own))) {
      failures.begin(
          new FailureEvent(
              group.name(),
              Kind.FAILED,
              group.rank(),
              -1,
              type,
              0,
              Duration.ZERO,
              ("the ranks of group %s made new groups in different orders: as number %s, rank %s"
                      + " called %s, but rank %s called %s")
                  .formatted(
                      group.name(),
                      name,
                      first[0],
                      methodOf(first[2]),
                      group.rank(),
                      methodOf(own))));
      failures.throwAgreed();
    }
    return first;
  }

  private static String methodOf(String call) {
    return Character.isDigit(call.charAt(0)) ? OpType.SUBGROUP.label() : call;
  }

  private CollectiveException refuse(
      String name, int firstRank, int firstIndex, String first, String own) {
    String text =
        "the ranks of group %s gave different lists: rank %s gave %s, but rank %s gave %s"
            .formatted(group.name(), firstRank, first, group.rank(), own);
    monitor.refuse(
        new FailureEvent(
            name,
            Kind.FAILED,
            Math.max(0, firstIndex),
            -1,
            OpType.SUBGROUP,
            0,
            Duration.ZERO,
            text));
    return SetUpFailure.ofLists(
        text, group.failure(OpType.SUBGROUP, 0, firstRank, -1, Duration.ZERO));
  }

  /**
   * Formats ranks concisely, the same ranks always in the same way: {@code 0, 1}, {@code 0..7},
   * {@code 0..56 by 8}.
   *
   * @param ranks the ranks, sorted and without duplicates
   */
  public static String text(List<Integer> ranks) {
    StringBuilder text = new StringBuilder();
    int i = 0;
    while (i < ranks.size()) {
      int end = endOfRun(ranks, i);
      text.append(i == 0 ? "" : ", ").append(ranks.get(i));
      if (end - i < 4) {
        i++;
        continue;
      }
      text.append("..").append(ranks.get(end - 1));
      int step = ranks.get(i + 1) - ranks.get(i);
      if (step > 1) {
        text.append(" by ").append(step);
      }
      i = end;
    }
    return text.toString();
  }

  private static int endOfRun(List<Integer> ranks, int start) {
    int end = Math.min(start + 2, ranks.size());
    while (end < ranks.size()
        && ranks.get(end) - ranks.get(end - 1) == ranks.get(start + 1) - ranks.get(start)) {
      end++;
    }
    return end;
  }
}
