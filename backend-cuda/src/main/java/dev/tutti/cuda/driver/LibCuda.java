package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * Direct calls of {@code libcuda.so.1}. Addresses and handles are plain numbers, so no call
 * allocates. This class must not be initialized before {@link NativeLibraries} has found the
 * library.
 */
final class LibCuda {
  static final String NAME = "libcuda.so.1";

  /** The driver's result for work that is not done. */
  static final int NOT_READY = 600;

  private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup(NAME, Arena.global());
  private static final MethodHandle CTX_SET_CURRENT = function("cuCtxSetCurrent", JAVA_LONG);
  private static final MethodHandle LAUNCH =
      function(
          "cuLaunchKernel",
          JAVA_LONG,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_INT,
          JAVA_LONG,
          JAVA_LONG,
          JAVA_LONG);
  private static final MethodHandle STREAM_QUERY = function("cuStreamQuery", JAVA_LONG);
  private static final MethodHandle STREAM_SYNCHRONIZE = function("cuStreamSynchronize", JAVA_LONG);
  private static final MethodHandle STREAM_WAIT_EVENT =
      function("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle STREAM_IS_CAPTURING =
      function("cuStreamIsCapturing", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle STREAM_WRITE_VALUE =
      function("cuStreamWriteValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle STREAM_WAIT_VALUE =
      function("cuStreamWaitValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle MEMCPY_ASYNC =
      function("cuMemcpyAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle MEMSET_ASYNC =
      function("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle EVENT_RECORD = function("cuEventRecord", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle EVENT_QUERY = function("cuEventQuery", JAVA_LONG);
  private static final MethodHandle GRAPH_LAUNCH = function("cuGraphLaunch", JAVA_LONG, JAVA_LONG);

  private LibCuda() {}

  /** Finds a function that returns a driver result. */
  static MethodHandle function(String name, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(LIBRARY.findOrThrow(name), FunctionDescriptor.of(JAVA_INT, parameters));
  }

  static int ctxSetCurrent(long context) {
    try {
      return (int) CTX_SET_CURRENT.invokeExact(context);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int launch(
      long function,
      int gridX,
      int gridY,
      int gridZ,
      int blockX,
      int blockY,
      int blockZ,
      int sharedBytes,
      long stream,
      long parameters) {
    try {
      return (int)
          LAUNCH.invokeExact(
              function,
              gridX,
              gridY,
              gridZ,
              blockX,
              blockY,
              blockZ,
              sharedBytes,
              stream,
              parameters,
              0L);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamQuery(long stream) {
    try {
      return (int) STREAM_QUERY.invokeExact(stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamSynchronize(long stream) {
    try {
      return (int) STREAM_SYNCHRONIZE.invokeExact(stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamWaitEvent(long stream, long event) {
    try {
      return (int) STREAM_WAIT_EVENT.invokeExact(stream, event, 0);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamIsCapturing(long stream, long result) {
    try {
      return (int) STREAM_IS_CAPTURING.invokeExact(stream, result);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamWriteValue(long stream, long target, int value, int flags) {
    try {
      return (int) STREAM_WRITE_VALUE.invokeExact(stream, target, value, flags);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int streamWaitValue(long stream, long source, int value, int flags) {
    try {
      return (int) STREAM_WAIT_VALUE.invokeExact(stream, source, value, flags);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int memcpyAsync(long target, long source, long bytes, long stream) {
    try {
      return (int) MEMCPY_ASYNC.invokeExact(target, source, bytes, stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int memsetAsync(long target, byte value, long bytes, long stream) {
    try {
      return (int) MEMSET_ASYNC.invokeExact(target, value, bytes, stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int eventRecord(long event, long stream) {
    try {
      return (int) EVENT_RECORD.invokeExact(event, stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int eventQuery(long event) {
    try {
      return (int) EVENT_QUERY.invokeExact(event);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  static int graphLaunch(long executable, long stream) {
    try {
      return (int) GRAPH_LAUNCH.invokeExact(executable, stream);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }
}
