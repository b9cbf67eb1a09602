package dev.tutti.cuda;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Holds each thread's current device and its current stream of each device. */
final class CurrentStreams {
  private final ThreadLocal<OfThread> threads;

  /** What one thread has; the default stream where there is null. */
  private static final class OfThread {
    private final @Nullable CudaStream[] streams;
    private int device;

    OfThread(int devices) {
      streams = new @Nullable CudaStream[devices];
    }
  }

  CurrentStreams(int devices) {
    threads = ThreadLocal.withInitial(() -> new OfThread(devices));
  }

  /** Returns the ordinal of the calling thread's current device. */
  int device() {
    return threads.get().device;
  }

  /** Returns the calling thread's current stream of a device. */
  CudaStream of(CudaDevice device) {
    CudaStream stream = threads.get().streams[device.index()];
    return stream == null ? device.defaultStream() : stream;
  }

  CudaStream.Scope enter(CudaStream stream) {
    OfThread own = threads.get();
    CudaStream before = of(stream.device());
    CudaStream.Scope scope = new CudaStream.Scope(this, stream, before, own.device);
    set(own, stream, stream.device().index());
    return scope;
  }

  void leave(CudaStream entered, CudaStream before, int deviceBefore) {
    OfThread own = threads.get();
    if (!of(entered.device()).equals(entered)) {
      throw new IllegalStateException("a scope inside is open: " + Arrays.toString(own.streams));
    }
    set(own, before, deviceBefore);
  }

  private static void set(OfThread own, CudaStream stream, int device) {
    own.streams[stream.device().index()] = stream;
    own.device = device;
  }
}
