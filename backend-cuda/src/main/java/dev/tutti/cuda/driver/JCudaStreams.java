package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/** Stream calls that create streams through JCuda, and put work into them directly. */
final class JCudaStreams implements StreamCalls {
  private static final int WRITE_DEFAULT = 0;
  private static final int WAIT_GREATER_OR_EQUAL = 0;

  /**
   * The driver's result for the default stream while a stream is being captured that the default
   * stream synchronizes with.
   */
  private static final int CAPTURE_IMPLICIT = 906;

  private static final MethodHandle QUERY = LibCuda.function("cuStreamQuery", JAVA_LONG);
  private static final MethodHandle SYNCHRONIZE =
      LibCuda.function("cuStreamSynchronize", JAVA_LONG);
  private static final MethodHandle WAIT_EVENT =
      LibCuda.function("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle IS_CAPTURING =
      LibCuda.function("cuStreamIsCapturing", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle WRITE_VALUE =
      LibCuda.function("cuStreamWriteValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle WAIT_VALUE =
      LibCuda.function("cuStreamWaitValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
  private static final MethodHandle COPY =
      LibCuda.function("cuMemcpyAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle FILL =
      LibCuda.function("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);

  private final Map<Long, Stream> streams = new ConcurrentHashMap<>();

  @Override
  public int highestPriority() {
    int[] least = new int[1];
    int[] greatest = new int[1];
    Errors.call(
        "cuCtxGetStreamPriorityRange",
        () -> JCudaDriver.cuCtxGetStreamPriorityRange(least, greatest));
    return greatest[0];
  }

  @Override
  public long create(int priority) {
    Stream stream = new Stream();
    Errors.call(
        "cuStreamCreateWithPriority",
        () ->
            JCudaDriver.cuStreamCreateWithPriority(
                stream, CUstream_flags.CU_STREAM_NON_BLOCKING, priority));
    streams.put(stream.number(), stream);
    return stream.number();
  }

  @Override
  public void destroy(long stream) {
    Stream known = streams.remove(stream);
    if (known != null) {
      Errors.call("cuStreamDestroy", () -> JCudaDriver.cuStreamDestroy(known));
    }
  }

  @Override
  public boolean isIdle(long stream) {
    try {
      return Errors.isDone((int) QUERY.invokeExact(stream), "cuStreamQuery");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void synchronize(long stream) {
    Errors.call("cuStreamSynchronize", () -> (int) SYNCHRONIZE.invokeExact(stream));
  }

  @Override
  public void waitFor(long stream, long event) {
    try {
      Errors.check((int) WAIT_EVENT.invokeExact(stream, event, 0), "cuStreamWaitEvent");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void copy(long target, long source, long bytes, long stream) {
    try {
      Errors.check((int) COPY.invokeExact(target, source, bytes, stream), "cuMemcpyAsync");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void fill(long target, byte value, long bytes, long stream) {
    try {
      Errors.check((int) FILL.invokeExact(target, value, bytes, stream), "cuMemsetD8Async");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void writeValue(long stream, long target, int value) {
    try {
      Errors.check(
          (int) WRITE_VALUE.invokeExact(stream, target, value, WRITE_DEFAULT),
          "cuStreamWriteValue32");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void waitValue(long stream, long source, int value) {
    Errors.call(
        "cuStreamWaitValue32",
        () -> (int) WAIT_VALUE.invokeExact(stream, source, value, WAIT_GREATER_OR_EQUAL));
  }

  @Override
  public boolean isCapturing(long stream) {
    OutCell out = OutCell.zeroed();
    try {
      int code = (int) IS_CAPTURING.invokeExact(stream, out.address());
      if (code == CAPTURE_IMPLICIT) {
        return true;
      }
      Errors.check(code, "cuStreamIsCapturing");
      return out.getInt() != 0;
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  private static final class Stream extends CUstream {
    long number() {
      return getNativePointer();
    }
  }
}
