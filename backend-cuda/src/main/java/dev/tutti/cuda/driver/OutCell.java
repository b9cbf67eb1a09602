package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Eight bytes of native memory into which the driver writes a result; one per thread. */
final class OutCell {
  private static final ThreadLocal<OutCell> CELLS = ThreadLocal.withInitial(OutCell::new);

  private final MemorySegment cell = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
  private final long address = cell.address();

  /** A call of the driver that writes its result at an address. */
  interface WritingCall {
    int run(long result) throws Throwable;
  }

  /**
   * Makes a call and returns what it wrote.
   *
   * @param name the name of the call
   * @param call makes the call
   */
  static long read(String name, WritingCall call) {
    OutCell out = zeroed();
    Errors.call(name, () -> call.run(out.address));
    return out.cell.get(ValueLayout.JAVA_LONG, 0);
  }

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

  int getInt() {
    return cell.get(ValueLayout.JAVA_INT, 0);
  }
}
