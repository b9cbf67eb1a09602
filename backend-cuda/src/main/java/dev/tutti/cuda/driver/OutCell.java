package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Eight bytes of native memory into which the driver writes a result; one per thread. */
final class OutCell {
  private static final ThreadLocal<OutCell> CELLS = ThreadLocal.withInitial(OutCell::new);

  private final MemorySegment cell = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
  private final long address = cell.address();

  /** Returns the calling thread's cell, filled with zeros. */
  static OutCell zeroed() {
    OutCell own = CELLS.get();
    own.cell.set(ValueLayout.JAVA_LONG, 0, 0);
    return own;
  }

  long address() {
    return address;
  }

  void setInt(int value) {
    cell.set(ValueLayout.JAVA_INT, 0, value);
  }

  long getLong() {
    return cell.get(ValueLayout.JAVA_LONG, 0);
  }

  int getInt() {
    return cell.get(ValueLayout.JAVA_INT, 0);
  }
}
