package dev.tutti.cuda.access;

/** A static method that returns what objects hide from users. */
public final class Parts {
  private Parts() {}

  /** Returns the parts of an object. */
  public static <P> P of(Facade<P> facade) {
    return facade.parts;
  }
}
