package dev.tutti.runtime.membership;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** The members of a job, as the entries of its log say. Not thread-safe. */
public final class Membership {
  /*
   * A generation, and a change, is the place of its entry in the log, so neither is ever used again.
   * An entry counts only if what it is based on still holds at its place: everybody reads the same
   * entries in the same order, and so agrees which ones count. That is the whole agreement.
   *
   * A member has a number, which no other process ever gets. Those of generation 0 are their ranks;
   * who joins gets the next one. The rank of a member is its place among the numbers.
   */
  private SortedSet<Integer> members = new TreeSet<>();
  private final SortedSet<Integer> lost = new TreeSet<>();

  /** Those that wait to join, each with the place of its entry. */
  private final Map<String, Long> waiting = new LinkedHashMap<>();

  private final Map<String, Integer> numbers = new HashMap<>();
  private final Map<Integer, String> leftOut = new HashMap<>();
  private int nextNumber;
  private long read;
  private long generation;
  private long open;

  /** The change that led to the current generation. */
  private long last;

  private MembershipEntry.@Nullable Change change;
  private String whyAbandoned = "";

  /** Creates the state of a process that has read nothing of the log and no number of ranks. */
  public Membership() {}

  /**
   * Creates the state of a member of generation 0.
   *
   * @param size the number of its members
   */
  public Membership(int size) {
    begin(size);
  }

  /** Creates a copy, which the original does not change. */
  public Membership(Membership other) {
    members = new TreeSet<>(other.members);
    lost.addAll(other.lost);
    waiting.putAll(other.waiting);
    numbers.putAll(other.numbers);
    leftOut.putAll(other.leftOut);
    nextNumber = other.nextNumber;
    read = other.read;
    generation = other.generation;
    open = other.open;
    last = other.last;
    change = other.change;
    whyAbandoned = other.whyAbandoned;
  }

  private void begin(int size) {
    nextNumber = size;
    for (int number = 0; number < size; number++) {
      members.add(number);
    }
  }

  /**
   * Takes the next entry of the log.
   *
   * @return whether it is the next one; if not, nothing changes
   */
  public boolean take(ChangeInput.Read next) {
    long place = next.place();
    if (place != read + 1) {
      return false;
    }
    read = place;
    if (next.lost() >= 0) {
      lost.add(next.lost());
    }
    take(place, next.entry());
    return true;
  }

  private void take(long place, @Nullable MembershipEntry entry) {
    switch (entry) {
      case MembershipEntry.Waiting(String name) -> {
        if (!numbers.containsKey(name)) {
          waiting.putIfAbsent(name, place);
        }
      }
      case MembershipEntry.Withdrawn(String name) -> waiting.remove(name);
      case MembershipEntry.Change wanted -> {
        if (nextNumber == 0) {
          begin(wanted.first());
        }
        if (open == 0 && wanted.base() == generation) {
          open = place;
          change = wanted;
        }
      }
      case MembershipEntry.Generation next -> {
        if (open != 0
            && next.change() == open
            && next.base() == generation
            && waiting.keySet().containsAll(next.plan().joined())) {
          enter(place, next.plan());
        }
      }
      case MembershipEntry.Abandoned(long what, int _, String why) -> {
        if (what == open) {
          open = 0;
          change = null;
          whyAbandoned = why;
        }
      }
      case null -> {}
    }
  }

  private void enter(long place, ChangePlan plan) {
    generation = place;
    last = open;
    open = 0;
    change = null;
    members = new TreeSet<>(members);
    plan.leftOut()
        .forEach(
            (number, why) -> {
              members.remove(number);
              leftOut.put(number, why);
            });
    for (String name : plan.joined()) {
      waiting.remove(name);
      members.add(nextNumber);
      numbers.put(name, nextNumber++);
    }
  }

  /** Returns the place of the last entry that was taken. */
  public long read() {
    return read;
  }

  /** Returns the current generation. */
  public long generation() {
    return generation;
  }

  /** Returns the numbers of the members of the current generation, in the order of their ranks. */
  public List<Integer> members() {
    return List.copyOf(members);
  }

  /** Returns the number of a process that has joined; -1 if it has not. */
  public int numberOf(String name) {
    return numbers.getOrDefault(name, -1);
  }

  /** Returns those that wait to join, in the order in which they came. */
  public List<String> waiting() {
    return List.copyOf(waiting.keySet());
  }

  /**
   * Returns how many wait that the last change could not take, because they came after it began.
   */
  int newcomers() {
    return (int) waiting.values().stream().filter(place -> place > last).count();
  }

  /** Returns why a member was left out; null if it was not. */
  public @Nullable String whyLeftOut(int number) {
    return leftOut.get(number);
  }

  /** Returns whether a process that was a member has ended. */
  boolean isLost(int number) {
    return lost.contains(number);
  }

  boolean isMember(int number) {
    return members.contains(number);
  }

  /** Returns the change that is open; 0 if there is none. */
  long open() {
    return open;
  }

  /** Returns what the open change requires. */
  MembershipEntry.@Nullable Change change() {
    return change;
  }

  String whyAbandoned() {
    return whyAbandoned;
  }

  /** Returns how many members generation 0 had. */
  int first() {
    return nextNumber - numbers.size();
  }
}
