package dev.tutti.runtime.model;

import java.util.List;

/**
 * A state of a protocol that an {@link Explorer} explores.
 *
 * @param <A> what may happen next
 */
public interface Model<A> {
  /** Something that must never be. */
  final class Violation extends RuntimeException {
    private static final long serialVersionUID = 1;

    public Violation(String what) {
      super(what);
    }
  }

  /** Returns what may happen next; nothing at the end. */
  List<A> actions();

  /** Returns the state after an action; this one stays as it is. */
  Model<A> after(A action);

  /** Returns a number that two states share only if they are alike. */
  long fingerprint();

  /**
   * Checks a state after which nothing happens.
   *
   * @throws Violation if it must not be the last
   */
  void checkEnd();
}
