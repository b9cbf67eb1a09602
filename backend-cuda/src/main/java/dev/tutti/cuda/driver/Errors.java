package dev.tutti.cuda.driver;

import dev.tutti.cuda.CudaException;
import java.util.function.IntSupplier;
import jcuda.driver.CUresult;

/** Turns results of the driver into exceptions. */
final class Errors {
  /** Bounds the driver's numbers of errors. */
  private static final int MAX_CODE = 1000;

  private Errors() {}

  /** Throws if a result is none of success. */
  static void check(int code, String call) {
    if (code != 0) {
      throw of(code, call);
    }
  }

  static CudaException of(int code, String call) {
    return new CudaException(call, code, CUresult.stringFor(code));
  }

  /**
   * Makes a call of JCuda and checks its result.
   *
   * @param name the call
   * @param call makes it
   */
  static void call(String name, IntSupplier call) {
    int code;
    try {
      code = call.getAsInt();
    } catch (jcuda.CudaException e) {
      // Somebody else in the process switched JCuda's own exceptions on.
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

  /** Wraps what a method handle can throw in theory. */
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
