package dev.tutti.cuda.driver;

/** Enters and leaves the contexts of devices. */
public interface ContextCalls {
  /**
   * Returns the primary context of a device, which all libraries of the process share; made if it
   * is not there yet.
   */
  long retainPrimary(int device);

  /** Gives up one {@link #retainPrimary}. */
  void releasePrimary(int device);

  /** Sets the calling thread's context. Allocates nothing. */
  void setCurrent(long context);

  /** Waits on the host, without a deadline, until all work of the current context is done. */
  void synchronize();

  /**
   * Lets the current context reach the memory of another one; does nothing if it does already.
   *
   * @param peer the other device's context
   */
  void enablePeerAccess(long peer);
}
