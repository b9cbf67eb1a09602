package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;

/** Event calls that create events through JCuda, and record them directly. */
final class JCudaEvents implements EventCalls {
  private static final MethodHandle RECORD =
      LibCuda.function("cuEventRecord", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle QUERY = LibCuda.function("cuEventQuery", JAVA_LONG);

  private final Map<Long, Event> events = new ConcurrentHashMap<>();

  /** The calls that pass handles between processes, linked when first used. */
  private static final class Ipc {
    static final MethodHandle DESTROY = LibCuda.function("cuEventDestroy_v2", JAVA_LONG);
    static final MethodHandle GET_HANDLE =
        LibCuda.function("cuIpcGetEventHandle", JAVA_LONG, JAVA_LONG);
    static final MethodHandle OPEN_HANDLE =
        LibCuda.function("cuIpcOpenEventHandle", JAVA_LONG, IpcHandles.HANDLE);
  }

  @Override
  public long create(Purpose purpose) {
    Event event = new Event();
    Errors.call("cuEventCreate", () -> JCudaDriver.cuEventCreate(event, purpose.flags()));
    events.put(event.number(), event);
    return event.number();
  }

  @Override
  public void destroy(long event) {
    Event known = events.remove(event);
    if (known != null) {
      Errors.call("cuEventDestroy", () -> JCudaDriver.cuEventDestroy(known));
    } else {
      Errors.call("cuEventDestroy", () -> (int) Ipc.DESTROY.invokeExact(event));
    }
  }

  @Override
  public void record(long event, long stream) {
    try {
      Errors.check((int) RECORD.invokeExact(event, stream), "cuEventRecord");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public boolean isReached(long event) {
    try {
      return Errors.isDone((int) QUERY.invokeExact(event), "cuEventQuery");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public float elapsedMillis(long start, long end) {
    float[] millis = new float[1];
    Errors.call(
        "cuEventElapsedTime",
        () -> JCudaDriver.cuEventElapsedTime(millis, known(start), known(end)));
    return millis[0];
  }

  private Event known(long event) {
    Event known = events.get(event);
    if (known == null) {
      throw new IllegalArgumentException("no such event: " + event);
    }
    return known;
  }

  @Override
  public byte[] exportHandle(long event) {
    return IpcHandles.export(
        "cuIpcGetEventHandle", bytes -> (int) Ipc.GET_HANDLE.invokeExact(bytes, event));
  }

  @Override
  public long openHandle(byte[] handle) {
    return IpcHandles.open(
        "cuIpcOpenEventHandle",
        handle,
        (result, bytes) -> (int) Ipc.OPEN_HANDLE.invokeExact(result, bytes));
  }

  private static final class Event extends CUevent {
    long number() {
      return getNativePointer();
    }
  }
}
