package dev.tutti.cuda.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/** Stream calls that create streams through JCuda, and put work into them directly. */
final class JCudaStreams implements StreamCalls {
  private static final int WAIT_GREATER_OR_EQUAL = 0;

  /**
   * The driver's result for the default stream while a stream is being captured that the default
   * stream synchronizes with.
   */
  private static final int CAPTURE_IMPLICIT = 906;

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
    int code = LibCuda.streamQuery(stream);
    if (code == LibCuda.NOT_READY) {
      return false;
    }
    Errors.check(code, "cuStreamQuery");
    return true;
  }

  @Override
  public void synchronize(long stream) {
    Errors.check(LibCuda.streamSynchronize(stream), "cuStreamSynchronize");
  }

  @Override
  public void waitFor(long stream, long event) {
    Errors.check(LibCuda.streamWaitEvent(stream, event), "cuStreamWaitEvent");
  }

  @Override
  public void copy(long target, long source, long bytes, long stream) {
    Errors.check(LibCuda.memcpyAsync(target, source, bytes, stream), "cuMemcpyAsync");
  }

  @Override
  public void fill(long target, byte value, long bytes, long stream) {
    Errors.check(LibCuda.memsetAsync(target, value, bytes, stream), "cuMemsetD8Async");
  }

  @Override
  public void writeValue(long stream, long target, int value) {
    Errors.check(LibCuda.streamWriteValue(stream, target, value, 0), "cuStreamWriteValue32");
  }

  @Override
  public void waitValue(long stream, long source, int value) {
    Errors.check(
        LibCuda.streamWaitValue(stream, source, value, WAIT_GREATER_OR_EQUAL),
        "cuStreamWaitValue32");
  }

  @Override
  public boolean isCapturing(long stream) {
    OutCell out = OutCell.zeroed();
    int code = LibCuda.streamIsCapturing(stream, out.address());
    if (code == CAPTURE_IMPLICIT) {
      return true;
    }
    Errors.check(code, "cuStreamIsCapturing");
    return out.getInt() != 0;
  }

  private static final class Stream extends CUstream {
    long number() {
      return getNativePointer();
    }
  }
}
