package dev.tutti.cuda.driver;

import dev.tutti.cuda.CudaException;
import java.util.function.IntSupplier;
import jcuda.driver.CUresult;

/** Static methods that convert driver results to exceptions. */
final class Errors {
  /** The upper bound on the driver's error codes. */
  private static final int MAX_CODE = 1000;

  private Errors() {}

  /** Throws if a result is not success. */
  static void check(int code, String call) {
    if (code != 0) {
      throw of(code, call);
    }
  }

  static CudaException of(int code, String call) {
    return new CudaException(call, code, CUresult.stringFor(code));
  }

  /**
   * Makes a JCuda call and checks its result.
   *
   * @param name the name of the call
   * @param call makes the call
   */
  static void call(String name, IntSupplier call) {
    int code;
    try {
      code = call.getAsInt();
    } catch (jcuda.CudaException e) {
      // Other code in the process enabled JCuda's own exceptions.
      code = codeOf(String.valueOf(e.getMessage()));
    }
    check(code, name);
  }

  private static int codeOf(String errorName) {
    for (int code = 1; code < MAX_CODE; code++) {
      if (errorName.equals(CUresult.stringFor(code))) {
        return code;
      }
    }
    return CUresult.CUDA_ERROR_UNKNOWN;
  }

  /** Wraps what a method handle is declared to throw. */
  static AssertionError unexpected(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    if (e instanceof RuntimeException exception) {
      throw exception;
    }
    return new AssertionError(e);
  }
}
