package dev.tutti.cuda;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Each thread's current device and its current stream on each device. */
final class CurrentStreams {
  private final ThreadLocal<OfThread> threads;

  /** The state of one thread; a null entry means the default stream. */
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

  /** Returns the calling thread's current stream on a device. */
  CudaStream of(CudaDevice device) {
    CudaStream stream = threads.get().streams[device.index()];
    return stream == null ? device.defaultStream() : stream;
  }

  /** Makes a stream the current one of its device, and returns the one before. */
  CudaStream exchange(CudaStream stream) {
    CudaStream before = of(stream.device());
    threads.get().streams[stream.device().index()] = stream;
    return before;
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
      throw new IllegalStateException(
          "a nested scope is still open: " + Arrays.toString(own.streams));
    }
    set(own, before, deviceBefore);
  }

  private static void set(OfThread own, CudaStream stream, int device) {
    own.streams[stream.device().index()] = stream;
    own.device = device;
  }
}
