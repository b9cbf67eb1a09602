package dev.tutti.cuda.access;

/**
 * An object of which users see one side, and this module also its parts, which {@link Parts}
 * returns.
 *
 * @param <P> the type of its parts
 */
public abstract class Facade<P> {
  final P parts;

  /** Creates an object that hides its parts from users. */
  protected Facade(P parts) {
    this.parts = parts;
  }
}
