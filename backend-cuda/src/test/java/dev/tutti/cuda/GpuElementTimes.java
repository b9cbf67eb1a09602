package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.element.DeviceNanSearch;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.spi.DeviceSession;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Times conversions and searches for NaN of 64 Mi elements on this machine's first GPU. Prints
 * medians in microseconds of device time, and the bytes read and written in each second.
 */
final class GpuElementTimes {
  private static final long NUMEL = 64L << 20;
  private static final int ROUNDS = 21;

  private GpuElementTimes() {}

  public static void main(String[] args) {
    CudaDevice device = Cuda.get().device(0);
    try (Arena arena = Arena.ofShared();
        DeviceSession session = new CudaBackendProvider().openDevice(0)) {
      Tensor floats = session.allocate(arena, DType.FLOAT32, NUMEL);
      session.copyFromHost(floats, Tensor.allocate(DType.FLOAT32, NUMEL).fill(1));
      for (DType type : new DType[] {DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64}) {
        Tensor others = session.allocate(arena, type, NUMEL);
        long bytes = floats.byteSize() + others.byteSize();
        print(session, "float32 to " + type, bytes, () -> DeviceCopy.copy(device, others, floats));
        print(session, type + " to float32", bytes, () -> DeviceCopy.copy(device, floats, others));
      }
      print(session, "NaN search of float32", floats.byteSize(), () -> search(device, floats));
      Tensor halves = session.allocate(arena, DType.FLOAT16, NUMEL);
      DeviceCopy.copy(device, halves, floats);
      print(session, "NaN search of float16", halves.byteSize(), () -> search(device, halves));
    }
  }

  private static void search(CudaDevice device, Tensor tensor) {
    try {
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
      if (DeviceNanSearch.firstNan(device, tensor, deadline, () -> {}) >= 0) {
        throw new AssertionError("found a NaN where there is none");
      }
    } catch (TimeoutException e) {
      throw new AssertionError(e);
    }
  }

  private static void print(DeviceSession session, String what, long bytes, Runnable work) {
    double[] times = new double[ROUNDS];
    for (int i = -3; i < ROUNDS; i++) {
      times[Math.max(i, 0)] = session.time(work, Duration.ofSeconds(10)).toNanos() / 1e3;
    }
    Arrays.sort(times);
    double median = times[ROUNDS / 2];
    System.out.printf("%s: %.0f us, %.0f GB/s%n", what, median, bytes / median / 1e3);
  }
}
