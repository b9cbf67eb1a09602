package dev.tutti.cuda.ipc;

import dev.tutti.BackendException;
import org.jspecify.annotations.Nullable;

/** Thrown when memory cannot be shared between processes, or no longer; gives the reason. */
public class CudaIpcException extends BackendException {
  private static final long serialVersionUID = 1L;

  /** The reason why memory cannot be shared. */
  public enum Reason {
    /** The bytes are not a handle, or were modified. */
    NOT_A_HANDLE,
    /** The handle comes from another job. */
    OTHER_JOB,
    /** The handle was made on another host, or before this host was booted. */
    OTHER_HOST,
    /** The handle was made by this process itself. */
    OWN_PROCESS,
    /** This process may not use the device that holds the memory. */
    NO_DEVICE,
    /** The sizes in the handle are inconsistent with each other or with the memory. */
    WRONG_SIZE,
    /** The process that shared the memory has ended, or is not visible to this process. */
    PRODUCER_GONE,
    /** The handle was already opened, or was taken back by the process that made it. */
    USED_UP,
    /** The tensor itself came from another process. */
    RECEIVED,
    /** The tensor was not allocated for sharing. */
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

  /** Returns the reason. */
  public Reason reason() {
    return reason;
  }
}
