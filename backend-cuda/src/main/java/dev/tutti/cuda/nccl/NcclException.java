package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;

/** Reports that a call of NCCL failed: which call, NCCL's result and what else NCCL said. */
public final class NcclException extends BackendException {
  private static final long serialVersionUID = 1L;

  private final int code;

  /**
   * Creates an exception.
   *
   * @param message the call, the result in words and numbers, and NCCL's last error
   * @param code NCCL's result
   */
  public NcclException(String message, int code) {
    super(message);
    this.code = code;
  }

  /** Returns NCCL's result. */
  public int code() {
    return code;
  }
}
