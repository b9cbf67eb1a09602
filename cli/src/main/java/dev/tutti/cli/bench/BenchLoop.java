package dev.tutti.cli.bench;

import dev.tutti.spi.DeviceSession;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A loop that runs a case back to back and records its times, by the clock of the host or of a
 * device.
 */
interface BenchLoop extends AutoCloseable {
  /** Returns the number of operations that share one recorded time. */
  int operations();

  /**
   * Runs calls back to back, and returns their total time in nanoseconds. Warm-up runs this same
   * loop, so that the measurement finds it compiled.
   *
   * @param calls the number of calls
   * @param nanos receives the times of the last calls
   */
  long run(long calls, long[] nanos);

  @Override
  default void close() {}

  /** Creates a loop that times each call on its thread. */
  static BenchLoop onHost(BenchCase item) {
    return new OnHost(item.call(), item.operations());
  }

  /**
   * Creates a loop that times many calls at once on a device, which runs asynchronously to the
   * thread.
   *
   * @param item the case
   * @param device the device of its tensors
   * @param iterations the maximum number of operations per call, or null if any number will do
   * @param graph whether the calls are recorded into a graph, whose replays are timed
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
   * @param operations the number of operations that a call runs
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
   * @param device the device
   * @param work enqueues the operations on the device's stream
   * @param operations the number of operations
   * @param limit the longest wait for them
   * @param end runs when the loop is closed
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
