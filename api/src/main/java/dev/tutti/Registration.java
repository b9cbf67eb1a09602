package dev.tutti;

/** Something registered, such as a listener, until it is closed. */
public interface Registration extends AutoCloseable {
  /** Ends the registration; the second and later calls do nothing. */
  @Override
  void close();
}
