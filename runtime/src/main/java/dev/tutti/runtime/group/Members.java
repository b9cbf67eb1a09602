package dev.tutti.runtime.group;

import dev.tutti.runtime.membership.Membership;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The members of a job's group of all ranks, as one of its processes sees them. */
final class Members {
  /*
   * The ranks among all ranks are the numbers of the members, which nobody else ever gets: keys,
   * entries of the log and wills of a process that was left out never concern another one. In the
   * first generation they are the ranks. A later generation has a group with a name of its own, and
   * is set up anew below that name.
   */
  private static final String FIRST = "0";

  /** What is known of the log; only for who holds the lock of this object. */
  final Membership log;

  private volatile Generation current;

  /** What was known of the log when the current generation began, and the one before. */
  private Membership begun;

  private @Nullable Membership begunBefore;

  /** The generation of the last group of all ranks that was set up, and the one before. */
  private volatile long last;

  private long lastBefore;

  /** A generation and the numbers of its members. */
  private record Generation(long number, List<Integer> members) {}

  Members(Membership log) {
    this.log = log;
    this.current = new Generation(0, log.members());
    this.begun = new Membership(log);
  }

  /** Enters the generation that the log is in. */
  void enter() {
    current = new Generation(log.generation(), log.members());
    begunBefore = begun.generation() < log.generation() ? begun : begunBefore;
    begun = new Membership(log);
  }

  /**
   * Returns what deletes the keys of earlier generations; call it once the current one is set up.
   */
  OldKeys oldKeys(JobStores stores) {
    return new OldKeys(stores, begun, begunBefore, lastBefore);
  }

  /** Returns the generation that this process is in. */
  long generation() {
    return current.number;
  }

  /** Returns the name of the group of all ranks in this generation, which may yet be set up. */
  String group() {
    return nameOf(current.number);
  }

  private static String nameOf(long generation) {
    return generation == 0 ? FIRST : FIRST + "~" + generation;
  }

  /** Notes that the group of the current generation is set up, and stands for the job. */
  void begin() {
    lastBefore = last;
    last = current.number;
  }

  /** Returns whether a group is the last one of all ranks; the job ends with it. */
  boolean isLastOfAll(Group group) {
    return group.identity.name().equals(nameOf(last));
  }

  /** Returns the numbers of the members, in rank order. */
  List<Integer> numbers() {
    return current.members;
  }

  /** Returns the ranks of members. */
  List<Integer> ranksOf(List<Integer> numbers) {
    List<Integer> all = current.members;
    return all.getLast() == all.size() - 1 ? numbers : numbers.stream().map(all::indexOf).toList();
  }
}
