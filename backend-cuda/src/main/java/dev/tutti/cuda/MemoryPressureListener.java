package dev.tutti.cuda;

/** Told when a device's memory is full, before an allocation fails. */
@FunctionalInterface
public interface MemoryPressureListener {
  /**
   * Frees what can be done without. Called on the thread that allocates, which holds no lock.
   *
   * @param bytes how much is wanted
   */
  void onPressure(long bytes);
}
