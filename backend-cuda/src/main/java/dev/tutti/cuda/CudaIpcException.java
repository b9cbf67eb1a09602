package dev.tutti.cuda;

import dev.tutti.BackendException;
import org.jspecify.annotations.Nullable;

/** Reports that memory cannot be shared between processes, or not any more, and why. */
public class CudaIpcException extends BackendException {
  private static final long serialVersionUID = 1L;

  /** Names what stands against it. */
  public enum Reason {
    /** The bytes are no handle, or were changed. */
    NOT_A_HANDLE,
    /** The handle was made in another job. */
    OTHER_JOB,
    /** The handle was made on another host, or before this one was booted. */
    OTHER_HOST,
    /** The handle was made by this very process. */
    OWN_PROCESS,
    /** This process may not use the device that the memory is of. */
    NO_DEVICE,
    /** The sizes in the handle do not fit together or to the memory. */
    WRONG_SIZE,
    /** The process that shared the memory has ended, or this one may not see it. */
    PRODUCER_GONE,
    /** The handle was opened before, or taken back by who made it. */
    USED_UP,
    /** The tensor came from another process itself. */
    RECEIVED,
    /** The tensor was not allocated to be shared. */
    NOT_SHARABLE
  }

  private final Reason reason;

  CudaIpcException(Reason reason, String message) {
    this(reason, message, null);
  }

  CudaIpcException(Reason reason, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.reason = reason;
  }

  /** Returns what stands against it. */
  public Reason reason() {
    return reason;
  }
}
