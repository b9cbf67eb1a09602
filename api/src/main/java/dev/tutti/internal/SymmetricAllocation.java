package dev.tutti.internal;

import dev.tutti.BackendException;
import dev.tutti.SymmetricMemory;
import dev.tutti.internal.GroupOperation.BackendCall;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import org.jspecify.annotations.Nullable;

/** Allocates symmetric memory as an operation of a group, and keeps it for the caller. */
final class SymmetricAllocation implements BackendCall {
  private final long byteSize;
  private @Nullable SymmetricMemory memory;
  private @Nullable BackendException refusal;

  SymmetricAllocation(long byteSize) {
    this.byteSize = byteSize;
  }

  @Override
  public void run(Backend backend, Operation op) throws Exception {
    try {
      memory = backend.allocateSymmetric(op, byteSize);
    } catch (BackendException e) {
      // All ranks have it, so they are still in step: no failure of the group.
      refusal = e;
    }
  }

  /** Returns what was allocated, after the operation ended with success. */
  SymmetricMemory result() {
    if (refusal != null) {
      throw refusal;
    }
    if (memory == null) {
      throw new IllegalStateException("the backend returned no symmetric memory");
    }
    return memory;
  }

  /** Frees what the caller does not get to see, after the operation failed. */
  void discard() {
    if (memory != null) {
      memory.close();
    }
  }
}
