package dev.tutti.cuda;

/** A listener that is called when a device's memory is full, before an allocation fails. */
@FunctionalInterface
public interface MemoryPressureListener {
  /**
   * Frees memory that can be spared. Called on the allocating thread, which holds no lock.
   *
   * @param bytes the number of bytes wanted
   */
  void onPressure(long bytes);
}
