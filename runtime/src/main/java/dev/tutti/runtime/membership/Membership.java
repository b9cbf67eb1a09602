package dev.tutti.runtime.membership;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** The members of a job, as the entries of its log say. Not thread-safe. */
public final class Membership {
  /*
   * A generation, and a change, is the place of its entry in the log, so neither is ever used again.
   * An entry counts only if what it is based on still holds at its place: everybody reads the same
   * entries in the same order, and so agrees which ones count. That is the whole agreement.
   *
   * The rank of a member is its place among the numbers of all members.
   */
  /** Of how many numbers, the last ones, an encoding has why they were left out. */
  private static final int MOST_REASONS = 16;

  private final SortedSet<Integer> members = new TreeSet<>();
  private final SortedSet<Integer> lost = new TreeSet<>();

  /** Those that wait to join, each with the place of its entry. */
  private final Map<String, Long> waiting = new LinkedHashMap<>();

  private final MemberNumbers numbers = new MemberNumbers();
  private final Map<Integer, String> leftOut = new TreeMap<>();
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
    become(other);
  }

  /** Takes over what another one has read. */
  void become(Membership other) {
    members.clear();
    lost.clear();
    waiting.clear();
    leftOut.clear();
    members.addAll(other.members);
    lost.addAll(other.lost);
    waiting.putAll(other.waiting);
    numbers.become(other.numbers);
    leftOut.putAll(other.leftOut);
    read = other.read;
    generation = other.generation;
    open = other.open;
    last = other.last;
    change = other.change;
    whyAbandoned = other.whyAbandoned;
  }

  private void begin(int size) {
    numbers.begin(size, size);
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
        if (numbers.of(name) < 0) {
          waiting.putIfAbsent(name, place);
        }
      }
      case MembershipEntry.Withdrawn(String name) -> waiting.remove(name);
      case MembershipEntry.Change wanted -> {
        if (numbers.next() == 0) {
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
    plan.leftOut()
        .forEach(
            (number, why) -> {
              members.remove(number);
              leftOut.put(number, why);
            });
    for (String name : plan.joined()) {
      waiting.remove(name);
      members.add(numbers.give(name));
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
    return numbers.of(name);
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
    return numbers.first();
  }

  /** Returns whether a process was a member, and is none in the current generation. */
  public boolean isGone(int number) {
    return number < numbers.next() && !members.contains(number);
  }

  /**
   * Returns all that matters later, as text.
   *
   * @throws IllegalStateException if a change is open
   */
  String encode() {
    if (open != 0) {
      throw new IllegalStateException("change " + open + " is open");
    }
    StringBuilder text = new StringBuilder();
    text.append(
        "%d %d %d %d %d".formatted(read, generation, last, numbers.next(), numbers.first()));
    members.forEach(each -> text.append("\nM ").append(each));
    lost.stream().filter(this::isMember).forEach(each -> text.append("\nL ").append(each));
    waiting.forEach((name, place) -> text.append("\nW ").append(place).append(' ').append(name));
    numbers.forEach(
        (name, number) -> {
          if (isMember(number)) {
            text.append("\nN ").append(number).append(' ').append(name);
          }
        });
    leftOut.forEach(
        (number, why) -> {
          if (number >= numbers.next() - MOST_REASONS) {
            text.append("\nX ").append(number).append(' ').append(why);
          }
        });
    return text.toString();
  }

  /**
   * Decodes what was encoded.
   *
   * @throws IllegalArgumentException if the text is not of this kind
   */
  static Membership decode(String text) {
    String[] lines = text.split("\n", -1);
    String[] places = lines[0].split(" ", -1);
    if (places.length != 5) {
      throw new IllegalArgumentException("not the members of a job: " + places.length + " places");
    }
    Membership all = new Membership();
    all.read = Long.parseLong(places[0]);
    all.generation = Long.parseLong(places[1]);
    all.last = Long.parseLong(places[2]);
    all.numbers.begin(Integer.parseInt(places[4]), Integer.parseInt(places[3]));
    for (String line : List.of(lines).subList(1, lines.length)) {
      String[] parts = (line + " ").split(" ", 3);
      long number = Long.parseLong(parts[1]);
      String rest = parts[2].stripTrailing();
      switch (parts[0]) {
        case "M" -> all.members.add((int) number);
        case "L" -> all.lost.add((int) number);
        case "W" -> all.waiting.put(rest, number);
        case "N" -> all.numbers.put(rest, (int) number);
        case "X" -> all.leftOut.put((int) number, rest);
        default -> throw new IllegalArgumentException("not the members of a job: " + parts[0]);
      }
    }
    return all;
  }
}
