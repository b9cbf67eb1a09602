package dev.tutti.cuda.driver;

/** The driver calls that enter and leave the contexts of devices. */
public interface ContextCalls {
  /**
   * Returns a device's primary context, which all libraries in the process share; creates it if it
   * does not exist yet.
   */
  long retainPrimary(int device);

  /** Releases the effect of one call of {@link #retainPrimary}. */
  void releasePrimary(int device);

  /** Makes a context the calling thread's current one. Allocates nothing. */
  void setCurrent(long context);

  /** Waits on the host, without a deadline, until all work in the current context is done. */
  void synchronize();

  /**
   * Lets the current context access the memory of another one; does nothing if it already can.
   *
   * @param peer the other device's context
   */
  void enablePeerAccess(long peer);
}
