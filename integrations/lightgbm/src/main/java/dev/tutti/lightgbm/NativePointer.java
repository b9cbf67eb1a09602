package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import java.lang.foreign.MemorySegment;

/**
 * An address in the form that the generated methods of {@code lightgbmlib} take, for passing data
 * without a copy.
 */
public final class NativePointer extends SWIGTYPE_p_void {
  private NativePointer(long address) {
    super(address, false);
  }

  /**
   * Returns the address of native memory. The caller must keep the memory alive while LightGBM uses
   * it; for a data set, that is during the call that creates it.
   *
   * @param segment the segment in native memory, in native byte order
   * @throws IllegalArgumentException if the segment is in the Java heap
   */
  public static NativePointer of(MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          "LightGBM reads native memory, not the Java heap: " + segment);
    }
    return new NativePointer(segment.address());
  }
}
