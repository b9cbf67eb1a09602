package dev.tutti.cuda.driver;

import dev.tutti.cuda.CudaException;
import jcuda.driver.CUresult;

/** Static methods that convert results of native calls to exceptions. */
public final class Errors {
  /** The driver's result for work that is not done. */
  private static final int NOT_READY = 600;

  /** The upper bound on the driver's error codes. */
  private static final int MAX_CODE = 1000;

  private Errors() {}

  /** A call of the driver that returns its result. */
  interface DriverCall {
    int run() throws Throwable;
  }

  /** Throws if a result is not success. */
  static void check(int code, String call) {
    if (code != 0) {
      throw new CudaException(call, code, CUresult.stringFor(code));
    }
  }

  /** Returns whether the result of a query says that the work is done; throws if it is an error. */
  static boolean isDone(int code, String call) {
    if (code == NOT_READY) {
      return false;
    }
    check(code, call);
    return true;
  }

  /**
   * Makes a call and checks its result.
   *
   * @param name the name of the call
   * @param call makes the call
   */
  static void call(String name, DriverCall call) {
    int code;
    try {
      code = call.run();
    } catch (jcuda.CudaException e) {
      // Other code in the process enabled JCuda's own exceptions.
      code = codeOf(String.valueOf(e.getMessage()));
    } catch (Throwable e) {
      throw unexpected(e);
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

  /**
   * Wraps what a method handle is declared to throw; rethrows an error or a runtime exception.
   *
   * @param e what was thrown
   */
  public static AssertionError unexpected(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    if (e instanceof RuntimeException exception) {
      throw exception;
    }
    return new AssertionError(e);
  }
}
