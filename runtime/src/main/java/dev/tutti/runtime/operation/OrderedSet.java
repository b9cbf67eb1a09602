package dev.tutti.runtime.operation;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * A set whose order is that of insertion, so that whoever goes through it does so in the same order
 * each time. Safe for use by multiple threads.
 *
 * @param <T> the type of the elements
 */
public final class OrderedSet<T> {
  private final Set<T> all = new LinkedHashSet<>();

  /** Creates an empty set. */
  public OrderedSet() {}

  /** Adds an element; returns whether it was not there. */
  public synchronized boolean add(T element) {
    return all.add(element);
  }

  /** Removes an element, if it is there. */
  public synchronized void remove(T element) {
    all.remove(element);
  }

  /** Returns whether there is no element. */
  public synchronized boolean isEmpty() {
    return all.isEmpty();
  }

  /** Returns the elements of this moment. */
  public synchronized List<T> copy() {
    return all.isEmpty() ? List.of() : List.copyOf(all);
  }
}
