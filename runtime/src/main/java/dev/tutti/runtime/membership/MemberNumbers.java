package dev.tutti.runtime.membership;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.ObjIntConsumer;

/**
 * The numbers of members, each given to one process of all that ever join. Those of generation 0
 * are their ranks; a process that joins gets the next one. Not thread-safe.
 */
final class MemberNumbers {
  private final Map<String, Integer> joined = new LinkedHashMap<>();
  private int first;
  private int next;

  /**
   * Sets which numbers are given.
   *
   * @param first how many members generation 0 had
   * @param next the next number
   */
  void begin(int first, int next) {
    this.first = first;
    this.next = next;
  }

  /** Takes over the numbers of another one, which this does not change. */
  void become(MemberNumbers other) {
    joined.clear();
    joined.putAll(other.joined);
    begin(other.first, other.next);
  }

  /** Returns how many members generation 0 had; 0 if that is not known yet. */
  int first() {
    return first;
  }

  /** Returns the number that who joins next gets. */
  int next() {
    return next;
  }

  /** Gives a process that joins the next number, and returns it. */
  int give(String name) {
    joined.put(name, next);
    return next++;
  }

  /** Notes that a process has joined. */
  void put(String name, int number) {
    joined.put(name, number);
  }

  /** Returns the number of a process that has joined; -1 if it has not. */
  int of(String name) {
    return joined.getOrDefault(name, -1);
  }

  /** Passes on all processes that have joined, in the order of their numbers. */
  void forEach(ObjIntConsumer<String> action) {
    joined.forEach((name, number) -> action.accept(name, number));
  }
}
