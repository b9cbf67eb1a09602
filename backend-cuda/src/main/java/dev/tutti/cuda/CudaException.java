package dev.tutti.cuda;

import dev.tutti.BackendException;

/** Reports that a call of the CUDA driver failed: which call, and the driver's name and number. */
public class CudaException extends BackendException {
  /** The number of {@code CUDA_ERROR_OUT_OF_MEMORY}. */
  public static final int OUT_OF_MEMORY = 2;

  private static final long serialVersionUID = 1L;

  private final String call;
  private final int code;
  private final String errorName;

  /**
   * Creates an exception.
   *
   * @param call the function of the driver, with what matters of its arguments
   * @param code its result, not 0
   * @param errorName the driver's name of the result, such as {@code CUDA_ERROR_INVALID_VALUE}
   */
  public CudaException(String call, int code, String errorName) {
    this(call, code, errorName, "");
  }

  /**
   * Creates an exception that says more.
   *
   * @param call the function of the driver, with what matters of its arguments
   * @param code its result, not 0
   * @param errorName the driver's name of the result, such as {@code CUDA_ERROR_INVALID_VALUE}
   * @param more what else the reader must know, or empty
   */
  public CudaException(String call, int code, String errorName, String more) {
    super(call + " failed: " + errorName + " (" + code + ")" + (more.isEmpty() ? "" : "; " + more));
    this.call = call;
    this.code = code;
    this.errorName = errorName;
  }

  /** Returns the function of the driver that failed. */
  public String call() {
    return call;
  }

  /** Returns the number of the driver's result. */
  public int code() {
    return code;
  }

  /** Returns the driver's name of the result. */
  public String errorName() {
    return errorName;
  }

  /** Tells whether there was no room in the device's memory. */
  public boolean isOutOfMemory() {
    return code == OUT_OF_MEMORY;
  }
}
