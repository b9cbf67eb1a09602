package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;

/** Thrown when an NCCL call fails; reports the call, NCCL's result, and NCCL's last error. */
public final class NcclException extends BackendException {
  private static final long serialVersionUID = 1L;

  private final int code;

  /**
   * Creates an exception.
   *
   * @param message the call, the result as text and number, and NCCL's last error
   * @param code NCCL's result code
   */
  public NcclException(String message, int code) {
    super(message);
    this.code = code;
  }

  /** Returns NCCL's result code. */
  public int code() {
    return code;
  }
}
