package dev.tutti.runtime.model;

/** Hashes the numbers of a state to 64 bits, to distinguish states. */
public class Hash {
  private long hash = 1;

  /** Returns the hash of all that was added, in its order. */
  public final long value() {
    long mixed = (hash ^ (hash >>> 29)) * 0xBF58476D1CE4E5B9L;
    return mixed ^ (mixed >>> 32);
  }

  /** Adds a number; unlike in hash codes of Java, 0 and -1, or {0, 1} and {1} differ. */
  public final void add(long value) {
    // A polynomial, whose terms are few instructions; its low bits are mixed once, at the end.
    hash = (hash + value) * 0x9E3779B97F4A7C15L;
  }
}
