package dev.tutti.cli.bench;

import dev.tutti.spi.DeviceSession;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Runs a case back to back and takes its times: by the host's clock, or by a device's. */
interface BenchLoop extends AutoCloseable {
  /** Returns how many operations have a time in common. */
  int operations();

  /**
   * Runs calls back to back, and returns the time of all in nanoseconds. Warming up runs this very
   * loop, so that the measurement finds it compiled.
   *
   * @param calls how often
   * @param nanos takes the times of the last calls
   */
  long run(long calls, long[] nanos);

  @Override
  default void close() {}

  /** Times each call on its thread. */
  static BenchLoop onHost(BenchCase item) {
    return new OnHost(item.call(), item.operations());
  }

  /**
   * Times many calls at once on a device, which runs behind the thread.
   *
   * @param item the case
   * @param device where its tensors are
   * @param iterations most operations of a call; null if any number will do
   * @param graph whether the calls are recorded into a graph, and what is timed are its replays
   * @param limit the longest wait for a call
   */
  static BenchLoop onDevice(
      BenchCase item,
      DeviceSession device,
      @Nullable Integer iterations,
      boolean graph,
      Duration limit) {
    int calls = item.bytes() <= 1 << 20 ? 100 : item.bytes() <= 16 << 20 ? 20 : 4;
    if (iterations != null) {
      calls = Math.clamp(Math.ceilDiv(iterations, item.operations()), 1, calls);
    }
    if (!graph) {
      int together = calls;
      Runnable work = () -> repeat(item.call(), together);
      return new OnDevice(device, work, together * item.operations(), limit, () -> {});
    }
    int recorded = Math.min(calls, 20);
    int replays = Math.ceilDiv(calls, recorded);
    DeviceSession.Recording recording = device.record(() -> repeat(item.call(), recorded));
    return new OnDevice(
        device,
        () -> repeat(recording::replay, replays),
        replays * recorded * item.operations(),
        limit,
        recording::close);
  }

  private static void repeat(Runnable call, int times) {
    for (int i = 0; i < times; i++) {
      call.run();
    }
  }

  /**
   * The loop on the calling thread.
   *
   * @param call runs the operations
   * @param operations how many a call runs
   */
  record OnHost(Runnable call, int operations) implements BenchLoop {
    @Override
    public long run(long calls, long[] nanos) {
      int slot = 0;
      long start = System.nanoTime();
      long before = start;
      for (long i = 0; i < calls; i++) {
        call.run();
        long now = System.nanoTime();
        nanos[slot] = now - before;
        slot = slot + 1 == nanos.length ? 0 : slot + 1;
        before = now;
      }
      return before - start;
    }
  }

  /**
   * The loop on a device.
   *
   * @param device where
   * @param work puts the operations into its stream
   * @param operations how many
   * @param limit the longest wait for them
   * @param end is run at the end
   */
  record OnDevice(DeviceSession device, Runnable work, int operations, Duration limit, Runnable end)
      implements BenchLoop {
    @Override
    public long run(long calls, long[] nanos) {
      int slot = 0;
      long sum = 0;
      for (long i = 0; i < calls; i++) {
        long time = device.time(work, limit).toNanos();
        nanos[slot] = time;
        slot = slot + 1 == nanos.length ? 0 : slot + 1;
        sum += time;
      }
      return sum;
    }

    @Override
    public void close() {
      end.run();
    }
  }
}
