package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.SymmetricMemory;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/** Allocates symmetric memory as an operation of a group, and keeps it for the caller. */
final class SymmetricAllocation implements Backend {
  private final Backend backend;
  private @Nullable SymmetricMemory memory;
  private @Nullable BackendException refusal;
  private boolean discarded;

  SymmetricAllocation(Backend backend) {
    this.backend = backend;
  }

  @Override
  public void run(Operation op) throws Exception {
    try {
      backend.run(op);
      SymmetricMemory allocated = op.call().memory();
      if (allocated != null) {
        keep(allocated);
      }
    } catch (BackendException e) {
      // All ranks get this exception, so they are still in step: the group has not failed.
      refuse(e);
    }
  }

  private synchronized void keep(SymmetricMemory allocated) {
    if (discarded) {
      allocated.close();
    } else {
      memory = allocated;
    }
  }

  private synchronized void refuse(BackendException cause) {
    refusal = cause;
  }

  /** Returns the allocated memory, after the operation has ended successfully. */
  synchronized SymmetricMemory result() {
    if (refusal != null) {
      throw refusal;
    }
    if (memory == null) {
      throw new IllegalStateException("the backend returned no symmetric memory");
    }
    return memory;
  }

  /**
   * Frees memory that does not reach the caller: now, or once it is allocated, since the operation
   * of an interrupted caller continues.
   */
  synchronized void discard() {
    discarded = true;
    if (memory != null) {
      memory.close();
    }
  }

  @Override
  public void abort(Throwable cause) {
    backend.abort(cause);
  }

  @Override
  public void close() {}
}
