package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** Fake streams; each device has a default one. */
final class FakeStreams implements StreamCalls {
  private static final long PATIENCE_NANOS = 100_000_000_000L;
  private static final int HIGHEST = -5;
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  private final FakeCudaDriver fake;
  private final Map<Long, FakeStream> streams = new ConcurrentHashMap<>();
  private final Map<Integer, FakeStream> defaults = new ConcurrentHashMap<>();
  private final Set<Long> destroyed = ConcurrentHashMap.newKeySet();
  private final List<Integer> priorities = new ArrayList<>();

  FakeStreams(FakeCudaDriver fake) {
    this.fake = fake;
  }

  /** Finds a stream of the current context. */
  FakeStream require(String call, long stream) {
    int device = fake.contexts().requireDevice(call);
    fake.requireHealthy(call);
    if (stream == DEFAULT) {
      return defaults.computeIfAbsent(device, fake::newStream);
    }
    FakeStream known = streams.get(stream);
    if (destroyed.contains(stream)) {
      throw new AssertionError(call + " of a destroyed stream ends the process");
    }
    if (known == null || known.device != device) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.INVALID_HANDLE);
    }
    return known;
  }

  /** Returns the captures that have not ended. */
  List<FakeCapture> captures() {
    return streams.values().stream().map(FakeStream::capture).filter(Objects::nonNull).toList();
  }

  @Override
  public int highestPriority() {
    return HIGHEST;
  }

  @Override
  public long create(int priority) {
    fake.enter("cuStreamCreateWithPriority", String.valueOf(priority));
    int device = fake.contexts().requireDevice("cuStreamCreateWithPriority");
    long handle = fake.make("stream");
    synchronized (priorities) {
      priorities.add(priority);
    }
    streams.put(handle, fake.newStream(device));
    return handle;
  }

  @Override
  public void destroy(long stream) {
    fake.enter("cuStreamDestroy", hex(stream));
    FakeStream known = require("cuStreamDestroy", stream);
    fake.destroy("cuStreamDestroy", stream, "stream");
    streams.remove(stream);
    destroyed.add(stream);
    known.enqueue(known::end);
  }

  @Override
  public boolean isIdle(long stream) {
    FakeStream known = require("cuStreamQuery", stream);
    fake.graphs().requireSafe("cuStreamQuery");
    FakeCapture capture = known.capture();
    if (capture != null) {
      capture.spoil();
      throw FakeCudaDriver.error("cuStreamQuery", FakeCudaDriver.CAPTURE_UNSUPPORTED);
    }
    Clock clock = known.idleClock();
    if (clock != null) {
      fake.races().saw(clock);
    }
    fake.carryOn();
    return clock != null;
  }

  @Override
  public void synchronize(long stream) {
    fake.enter("cuStreamSynchronize", hex(stream));
    awaitIdle("cuStreamSynchronize", require("cuStreamSynchronize", stream));
  }

  /** Waits as the real driver does, but not forever. */
  private void awaitIdle(String call, FakeStream stream) {
    long deadline = System.nanoTime() + PATIENCE_NANOS;
    Clock clock = stream.idleClock();
    for (; clock == null; clock = stream.idleClock()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError(call + " waits for a stream that nobody releases");
      }
      LockSupport.parkNanos(100_000);
    }
    fake.races().saw(clock);
  }

  /** Waits until a device is idle. */
  void awaitIdle(String call, int device) {
    streams.values().stream()
        .filter(stream -> stream.device == device)
        .forEach(stream -> awaitIdle(call, stream));
    FakeStream own = defaults.get(device);
    if (own != null) {
      awaitIdle(call, own);
    }
  }

  @Override
  public void waitFor(long stream, long event) {
    fake.enter("cuStreamWaitEvent", hex(stream) + " " + hex(event));
    if (!fake.dropsWait()) {
      FakeStream queue = require("cuStreamWaitEvent", stream);
      fake.events().order("cuStreamWaitEvent", event, queue, !fake.hidesWait());
    }
  }

  @Override
  public void copy(long target, long source, long bytes, long stream) {
    fake.enter("cuMemcpyAsync", bytes + " " + hex(stream));
    FakeStream queue = require("cuMemcpyAsync", stream);
    if (!fake.memory().isAllowed(target, queue.device)
        || !fake.memory().isAllowed(source, queue.device)) {
      throw FakeCudaDriver.error("cuMemcpyAsync", FakeCudaDriver.INVALID_VALUE);
    }
    queue.enqueue(
        () -> {
          if (fake.memory().isUsable(target, bytes) && fake.memory().isUsable(source, bytes)) {
            fake.races().read("cuMemcpyAsync", source, bytes);
            fake.races().write("cuMemcpyAsync", target, bytes);
            at(target, bytes).copyFrom(at(source, bytes));
          } else {
            fake.fail(FakeCudaDriver.ILLEGAL_ADDRESS);
          }
        });
  }

  @Override
  public void fill(long target, byte value, long bytes, long stream) {
    fake.enter("cuMemsetD8Async", bytes + " " + hex(stream));
    require("cuMemsetD8Async", stream)
        .enqueue(
            () -> {
              if (fake.memory().isUsable(target, bytes)) {
                fake.races().write("cuMemsetD8Async", target, bytes);
                at(target, bytes).fill(value);
              } else {
                fake.fail(FakeCudaDriver.ILLEGAL_ADDRESS);
              }
            });
  }

  private static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  @Override
  public void writeValue(long stream, long target, int value) {
    fake.enter("cuStreamWriteValue32", hex(stream));
    require("cuStreamWriteValue32", stream)
        .enqueue(
            () -> {
              if (fake.memory().isUsable(target, Integer.BYTES)) {
                fake.races().release(target);
                WORD.setVolatile(at(target, Integer.BYTES), 0L, value);
              } else {
                fake.fail(FakeCudaDriver.ILLEGAL_ADDRESS);
              }
            });
  }

  @Override
  public void waitValue(long stream, long source, int value) {
    fake.enter("cuStreamWaitValue32", hex(stream));
    boolean isKnown = !fake.hidesWait();
    require("cuStreamWaitValue32", stream)
        .enqueue(
            () -> {
              while ((int) WORD.getVolatile(at(source, Integer.BYTES), 0L) - value < 0) {
                Thread.sleep(0, 100_000);
              }
              if (isKnown) {
                fake.races().acquire(source);
              }
            });
  }

  @Override
  public boolean isCapturing(long stream) {
    return require("cuStreamIsCapturing", stream).isCapturing();
  }

  void close() {
    streams.values().forEach(FakeStream::close);
    defaults.values().forEach(FakeStream::close);
  }
}
