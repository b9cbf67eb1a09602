package dev.tutti.spi;

import dev.tutti.Store;
import dev.tutti.StoreException;

/**
 * An ability of a {@link Store} that can detect the end of a process: it carries out the will that
 * the process left. Any thread may call any method.
 */
public interface Wills {
  /**
   * Leaves a will that the store carries out if this process ends, or its host is lost, before this
   * handle is closed: the store then appends the numbers from 1 on to {@code log} and sets the
   * first key that is absent. If the value of the key {@code log} with {@code first} behind it
   * begins with a line that is a number, it begins with that number.
   *
   * @param log the start of the keys, in front of the number
   * @param value the value to set, copied
   * @return whether the store can detect such an end; if not, the call does nothing
   * @throws StoreException if the store fails
   */
  boolean leaveWill(String log, byte[] value);

  /**
   * Leaves a will with a store as {@link #leaveWill} does.
   *
   * @param store the store, which may lack the ability
   * @param log the start of the keys, in front of the number
   * @param value the value to set, copied
   * @return whether the store can detect the end of this process; if not, the call does nothing
   * @throws StoreException if the store fails
   */
  static boolean leave(Store store, String log, byte[] value) {
    return store instanceof Wills wills && wills.leaveWill(log, value);
  }
}
