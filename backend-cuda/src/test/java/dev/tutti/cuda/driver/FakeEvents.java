package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** Fake events; each record has a latch of its own. */
final class FakeEvents implements EventCalls {
  private final FakeCudaDriver fake;
  private final Map<Long, Event> events = new ConcurrentHashMap<>();

  private static final class Event {
    private final int device;
    private final Purpose purpose;
    private volatile FakePoint last = FakePoint.passed();
    private volatile boolean recorded;
    private volatile @Nullable FakeCapture capture;

    Event(int device, Purpose purpose) {
      this.device = device;
      this.purpose = purpose;
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
  public long create(Purpose purpose) {
    fake.enter("cuEventCreate", "");
    int device = fake.contexts().requireDevice("cuEventCreate");
    long handle = fake.make("event");
    events.put(handle, new Event(device, purpose));
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
    FakePoint point = new FakePoint();
    known.last = point;
    known.recorded = true;
    known.capture = queue.capture();
    queue.mark(point);
  }

  @Override
  public boolean isReached(long event) {
    Event known = require("cuEventQuery", event);
    fake.graphs().requireSafe("cuEventQuery");
    FakeCapture capture = known.capture;
    if (capture != null) {
      capture.spoil();
      throw FakeCudaDriver.error(
          "cuEventQuery",
          capture.isEnded() ? FakeCudaDriver.INVALID_VALUE : FakeCudaDriver.CAPTURED_EVENT);
    }
    FakePoint last = known.last;
    boolean reached = last.reached.getCount() == 0;
    if (reached) {
      fake.races().saw(last.clock);
    }
    fake.carryOn();
    return reached;
  }

  /**
   * Orders later work in a stream after an event. In a capture, no order may lead in or out; a
   * stream that is in none joins that of the event.
   */
  void order(String call, long event, FakeStream queue, boolean isKnown) {
    Event known = require(call, event);
    FakeCapture from = known.capture;
    FakeCapture to = queue.capture();
    if (from != null && from.isEnded()) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.INVALID_VALUE);
    }
    if (from != null && to == null) {
      queue.joinCapture(from);
    } else if (from != to && (from != null || known.recorded)) {
      to.spoil();
      throw FakeCudaDriver.error(call, FakeCudaDriver.CAPTURE_ISOLATION);
    }
    queue.await(known.last, isKnown);
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
    if (require("cuIpcGetEventHandle", event).purpose != Purpose.INTERPROCESS) {
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
            : new Event(
                fake.contexts().requireDevice("cuIpcOpenEventHandle"), Purpose.INTERPROCESS);
    long opened = fake.make("event");
    events.put(opened, known);
    return opened;
  }
}
