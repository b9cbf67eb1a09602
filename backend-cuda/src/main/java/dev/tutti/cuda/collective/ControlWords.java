package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.PinnedBlock;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/** The state that the kernels of a channel share with the host: an abort word and a status word. */
final class ControlWords {
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
  private static final long STATUS = 4;

  private final CudaDevice device;
  private final PinnedBlock block;
  private int last;
  private boolean closed;

  ControlWords(CudaDevice device) {
    this.device = device;
    this.block = Parts.of(device).pinned().allocate(2 * Integer.BYTES);
    reset();
  }

  long address() {
    return block.address();
  }

  /** Resets both words to zero; no work that uses them may be running. */
  synchronized void reset() {
    if (!closed) {
      WORD.setRelease(block.segment(), 0L, 0);
      WORD.setRelease(block.segment(), STATUS, 0);
    }
  }

  /** Ends all waits, now and in the future. */
  synchronized void abort() {
    if (!closed) {
      WORD.setRelease(block.segment(), 0L, 1);
    }
  }

  /** Returns the status that a kernel wrote, or 0. */
  synchronized int status() {
    if (!closed) {
      last = (int) WORD.getAcquire(block.segment(), STATUS);
    }
    return last;
  }

  /** Frees the words; no kernel may use them anymore. */
  synchronized void close() {
    if (!closed) {
      status();
      closed = true;
      Parts.of(device).pinned().free(block);
    }
  }
}
