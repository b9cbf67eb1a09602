package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import java.lang.foreign.MemorySegment;

/** An address as the generated methods of {@code lightgbmlib} take it, for data without a copy. */
public final class NativePointer extends SWIGTYPE_p_void {
  private NativePointer(long address) {
    super(address, false);
  }

  /**
   * Returns the address of native memory. It is the caller who keeps the memory alive while
   * LightGBM uses it, which for data sets is the call that makes them.
   *
   * @param segment in native memory, in native byte order
   * @throws IllegalArgumentException if it is in the Java heap
   */
  public static NativePointer of(MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          "LightGBM reads native memory, not the Java heap: " + segment);
    }
    return new NativePointer(segment.address());
  }
}
