package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/** Fake events; each record has a latch of its own. */
final class FakeEvents implements EventCalls {
  private static final CountDownLatch REACHED = new CountDownLatch(0);

  private final FakeCudaDriver fake;
  private final Map<Long, Event> events = new ConcurrentHashMap<>();

  private static final class Event {
    private final int device;
    private final Kind kind;
    private volatile CountDownLatch last = REACHED;
    private volatile FakeStream.@Nullable Capture capture;

    Event(int device, Kind kind) {
      this.device = device;
      this.kind = kind;
    }
  }

  FakeEvents(FakeCudaDriver fake) {
    this.fake = fake;
  }

  private Event require(String call, long event) {
    Event known = events.get(event);
    if (known == null) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.INVALID_HANDLE);
    }
    fake.requireHealthy(call);
    return known;
  }

  @Override
  public long create(Kind kind) {
    fake.enter("cuEventCreate", "");
    int device = fake.contexts().requireDevice("cuEventCreate");
    long handle = fake.make("event");
    events.put(handle, new Event(device, kind));
    return handle;
  }

  @Override
  public void destroy(long event) {
    fake.enter("cuEventDestroy", hex(event));
    fake.destroy("cuEventDestroy", event, "event");
    events.remove(event);
  }

  @Override
  public void record(long event, long stream) {
    fake.enter("cuEventRecord", hex(event) + " " + hex(stream));
    Event known = require("cuEventRecord", event);
    FakeStream queue = fake.streams().require("cuEventRecord", stream);
    if (known.device != queue.device) {
      throw FakeCudaDriver.error("cuEventRecord", FakeCudaDriver.INVALID_HANDLE);
    }
    CountDownLatch latch = new CountDownLatch(1);
    known.last = latch;
    known.capture = queue.capture();
    queue.mark(latch);
  }

  @Override
  public boolean isReached(long event) {
    Event known = require("cuEventQuery", event);
    fake.graphs().requireSafe("cuEventQuery");
    FakeStream.Capture capture = known.capture;
    if (capture != null) {
      capture.spoil();
      throw FakeCudaDriver.error(
          "cuEventQuery",
          capture.isEnded() ? FakeCudaDriver.INVALID_VALUE : FakeCudaDriver.CAPTURED_EVENT);
    }
    boolean reached = known.last.getCount() == 0;
    fake.carryOn();
    return reached;
  }

  FakeStream.Task waitTask(String call, long event) {
    CountDownLatch latch = require(call, event).last;
    return latch::await;
  }

  @Override
  public float elapsedMillis(long start, long end) {
    require("cuEventElapsedTime", start);
    require("cuEventElapsedTime", end);
    return 0.5f;
  }

  @Override
  public byte[] exportHandle(long event) {
    fake.enter("cuIpcGetEventHandle", hex(event));
    if (require("cuIpcGetEventHandle", event).kind != Kind.INTERPROCESS) {
      throw FakeCudaDriver.error("cuIpcGetEventHandle", FakeCudaDriver.INVALID_VALUE);
    }
    return ByteBuffer.allocate(IPC_HANDLE_BYTES)
        .putLong(event)
        .putLong(ProcessHandle.current().pid())
        .array();
  }

  @Override
  public long openHandle(byte[] handle) {
    fake.enter("cuIpcOpenEventHandle", "");
    ByteBuffer buffer = ByteBuffer.wrap(handle);
    long event = buffer.getLong();
    Event known =
        buffer.getLong() == ProcessHandle.current().pid()
            ? require("cuIpcOpenEventHandle", event)
            : new Event(fake.contexts().requireDevice("cuIpcOpenEventHandle"), Kind.INTERPROCESS);
    long opened = fake.make("event");
    events.put(opened, known);
    return opened;
  }
}
