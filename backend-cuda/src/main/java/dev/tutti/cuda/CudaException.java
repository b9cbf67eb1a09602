package dev.tutti.cuda;

import dev.tutti.BackendException;

/**
 * Thrown when a call to the CUDA driver fails; carries the call and the driver's error name and
 * number.
 */
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
   * @param call the driver function, with its relevant arguments
   * @param code the driver's result code, not 0
   * @param errorName the driver's name for the result, such as {@code CUDA_ERROR_INVALID_VALUE}
   */
  public CudaException(String call, int code, String errorName) {
    this(call, code, errorName, "");
  }

  /**
   * Creates an exception with further information.
   *
   * @param call the driver function, with its relevant arguments
   * @param code the driver's result code, not 0
   * @param errorName the driver's name for the result, such as {@code CUDA_ERROR_INVALID_VALUE}
   * @param more further information for the reader, or empty
   */
  public CudaException(String call, int code, String errorName, String more) {
    super(call + " failed: " + errorName + " (" + code + ")" + (more.isEmpty() ? "" : "; " + more));
    this.call = call;
    this.code = code;
    this.errorName = errorName;
  }

  /** Returns the driver function that failed. */
  public String call() {
    return call;
  }

  /** Returns the driver's result code. */
  public int code() {
    return code;
  }

  /** Returns the driver's name for the result. */
  public String errorName() {
    return errorName;
  }

  /** Returns whether the device was out of memory. */
  public boolean isOutOfMemory() {
    return code == OUT_OF_MEMORY;
  }
}
