package dev.tutti.cuda.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;

/** Event calls that create events through JCuda, and record them directly. */
final class JCudaEvents implements EventCalls {
  private final Map<Long, Event> events = new ConcurrentHashMap<>();

  @Override
  public long create(Kind kind) {
    Event event = new Event();
    Errors.call("cuEventCreate", () -> JCudaDriver.cuEventCreate(event, kind.flags()));
    events.put(event.number(), event);
    return event.number();
  }

  @Override
  public void destroy(long event) {
    Event known = events.remove(event);
    if (known != null) {
      Errors.call("cuEventDestroy", () -> JCudaDriver.cuEventDestroy(known));
    } else {
      Errors.check(IpcHandles.destroyEvent(event), "cuEventDestroy");
    }
  }

  @Override
  public void record(long event, long stream) {
    Errors.check(LibCuda.eventRecord(event, stream), "cuEventRecord");
  }

  @Override
  public boolean isReached(long event) {
    int code = LibCuda.eventQuery(event);
    if (code == LibCuda.NOT_READY) {
      return false;
    }
    Errors.check(code, "cuEventQuery");
    return true;
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
    return IpcHandles.export("cuIpcGetEventHandle", event, IpcHandles::getEvent);
  }

  @Override
  public long openHandle(byte[] handle) {
    return IpcHandles.open("cuIpcOpenEventHandle", handle, IpcHandles::openEvent);
  }

  private static final class Event extends CUevent {
    long number() {
      return getNativePointer();
    }
  }
}
