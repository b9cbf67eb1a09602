package dev.tutti.runtime.rendezvous;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.runtime.failure.FailureEvent;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.group.Group;
import dev.tutti.runtime.group.Job;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/** Finds out whether all ranks of a group give the same list of ranks for a new group. */
public final class RankAgreement {
  /*
   * The first rank publishes its list by compare-and-set, whose answer shows the others what is
   * there: one round trip for each rank, and nobody waits. Who gave another list reports a failure
   * of the new group, through which those learn it who agreed and wait in its set-up, or have it
   * already. The value is "RANK INDEX LIST": who published, its index in the list or -1.
   */
  private final Group group;
  private final Job job;

  public RankAgreement(Group group, Job job) {
    this.group = group;
    this.job = job;
  }

  /**
   * Compares with what the first rank gave.
   *
   * @param name the new group's name
   * @param ranks sorted
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws CollectiveException that names both lists, if they differ
   */
  public void require(String name, List<Integer> ranks, long deadlineNanos) {
    String own = text(ranks);
    String value = group.rank + " " + ranks.indexOf(group.rank) + " " + own;
    Store store = job.groupStore(group.name);
    Store.Swap swap =
        new StoreWait(group, store)
            .call(
                deadlineNanos,
                () ->
                    store.compareSet(
                        "subgroup/" + name, null, value.getBytes(StandardCharsets.UTF_8)));
    byte[] there = swap.value();
    if (swap.stored() || there == null) {
      return;
    }
    String[] first = new String(there, StandardCharsets.UTF_8).split(" ", 3);
    if (!first[2].equals(own)) {
      throw refuse(name, Integer.parseInt(first[0]), Integer.parseInt(first[1]), first[2], own);
    }
  }

  private CollectiveException refuse(
      String name, int firstRank, int firstIndex, String first, String own) {
    String text =
        "the ranks of group "
            + group.name
            + " gave different lists: rank "
            + firstRank
            + " gave "
            + first
            + ", but rank "
            + group.rank
            + " gave "
            + own;
    job.monitor()
        .report(
            new FailureEvent(
                name,
                Kind.FAILED,
                Math.max(0, firstIndex),
                -1,
                OpType.SUBGROUP,
                0,
                Duration.ZERO,
                text));
    return failure(
        text,
        FailureInfo.builder(group.name, group.rank, group.size)
            .operation(OpType.SUBGROUP, 0)
            .peer(firstRank)
            .build());
  }

  /** Tells whether an event of a group in set-up says that its ranks gave different lists. */
  public static boolean isRefusal(FailureEvent event) {
    return event.op() == OpType.SUBGROUP && event.kind() == Kind.FAILED;
  }

  /** Makes what a rank throws that learns it. */
  public static CollectiveException failure(String text, FailureInfo info) {
    return new CollectiveException(OpType.SUBGROUP.label() + " failed: " + text, info, null);
  }

  /**
   * Writes ranks shortly, the same ones always alike: {@code 0, 1}, {@code 0..7}, {@code 0..56 by
   * 8}.
   *
   * @param ranks sorted, without repeats
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
