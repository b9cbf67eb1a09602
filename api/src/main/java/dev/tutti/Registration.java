package dev.tutti;

/** A registration, such as of a listener, that lasts until it is closed. */
public interface Registration extends AutoCloseable {
  /** Ends the registration; further calls have no effect. */
  @Override
  void close();
}
