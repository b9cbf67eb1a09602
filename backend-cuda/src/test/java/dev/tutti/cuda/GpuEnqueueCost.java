package dev.tutti.cuda;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.store.HashStore;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;

/**
 * Times the host cost of enqueuing an all-reduce of 1 KiB, compared with a bare launch, on one GPU.
 * Two ranks are threads that share the GPU; rank 1 enqueues its calls after rank 0 has finished, so
 * that no other thread calls the driver meanwhile. Prints nanoseconds per call, in series of a
 * given number of calls.
 *
 * <p>Arguments: seconds to run, calls per series (100).
 */
public final class GpuEnqueueCost {
  private static final int WARM_SERIES = 400;
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final CudaDevice device = Cuda.get().device(0);
  private final CudaDriver driver = device.context().driver();
  private final CyclicBarrier turns = new CyclicBarrier(2);
  private final long nanos;
  private final int calls;
  private volatile boolean over;

  private GpuEnqueueCost(long nanos, int calls) {
    this.nanos = nanos;
    this.calls = calls;
  }

  /** Runs both ranks; rank 0 prints the results. */
  public static void main(String[] args) throws Exception {
    int calls = args.length > 1 ? Integer.parseInt(args[1]) : 100;
    GpuEnqueueCost cost =
        new GpuEnqueueCost(TimeUnit.SECONDS.toNanos(Long.parseLong(args[0])), calls);
    HashStore store = new HashStore();
    FutureTask<Void> other = cost.start(store, 1);
    FutureTask<Void> first = cost.start(store, 0);
    first.get();
    other.get();
  }

  private FutureTask<Void> start(HashStore store, int rank) {
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              run(store, rank);
              return null;
            });
    Thread.ofPlatform().name("rank " + rank).start(task);
    return task;
  }

  private void run(HashStore store, int rank) throws Exception {
    GroupOptions options =
        GroupOptions.DEFAULT
            .withStore(store)
            .withRank(rank)
            .withSize(2)
            .withDevice(Device.cuda(0))
            .withProvider(new CudaBackendProvider())
            .withSetting("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")
            .withTimeout(LIMIT);
    CudaStream stream = device.poolStream();
    try (CudaStream.Scope _ = stream.use();
        ProcessGroup group = ProcessGroup.init(options)) {
      Tensor tensor = device.tensors().allocate(DType.BFLOAT16, 512);
      Runnable reduce = () -> group.allReduce(tensor, ReduceOp.SUM);
      if (rank == 0) {
        time(stream, reduce);
      } else {
        follow(stream, reduce);
      }
    }
  }

  private void follow(CudaStream stream, Runnable reduce) throws Exception {
    for (turn(); !over; turn()) {
      turn();
      for (int i = 0; i < calls; i++) {
        reduce.run();
      }
      stream.await(LIMIT);
      turn();
    }
  }

  private void turn() throws Exception {
    turns.await(60, TimeUnit.SECONDS);
  }

  private double series(Runnable call) {
    long before = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      call.run();
    }
    return (double) (System.nanoTime() - before) / calls;
  }

  private void time(CudaStream stream, Runnable reduce) throws Exception {
    long module = Gpu.loadKernels(device);
    long nothing = driver.kernels().function(module, Gpu.NOTHING);
    LaunchParameters parameters = new LaunchParameters(8);
    long handle = stream.handle();
    Runnable launch = () -> parameters.launch(driver.kernels(), nothing, 1, 128, handle);
    long event = driver.events().create(EventCalls.Purpose.ORDER);
    double[] whole = new double[100_000];
    double[] bare = new double[whole.length];
    double[] record = new double[whole.length];
    double[] capturing = new double[whole.length];
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    long end = 0;
    int count = 0;
    for (int s = -WARM_SERIES; s < 0 || (System.nanoTime() < end && count < whole.length); s++) {
      turn();
      long bytes = threads.getCurrentThreadAllocatedBytes();
      double all = series(reduce);
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - bytes);
      turn();
      stream.await(LIMIT);
      turn();
      double alone = series(launch);
      stream.await(LIMIT);
      double recorded = series(() -> driver.events().record(event, handle));
      double captured = series(() -> driver.streams().isCapturing(handle));
      if (s >= 0) {
        whole[count] = all;
        bare[count] = alone;
        record[count] = recorded;
        capturing[count] = captured;
        count++;
      } else if (s == -1) {
        end = System.nanoTime() + nanos;
      }
    }
    over = true;
    turn();
    print("allReduce of 1 KiB", whole, count);
    print("cuLaunchKernel alone", bare, count);
    print("cuEventRecord", record, count);
    print("cuStreamIsCapturing", capturing, count);
    System.out.println("heap bytes of a series of " + calls + ": " + least);
  }

  private static void print(String what, double[] values, int count) {
    double[] sorted = Arrays.copyOf(values, count);
    Arrays.sort(sorted);
    System.out.printf(
        Locale.ROOT,
        "%-24s 10th %5.0f, 50th %5.0f, 90th percentile %5.0f ns, %d series%n",
        what,
        sorted[count / 10],
        sorted[count / 2],
        sorted[count * 9 / 10],
        count);
  }
}
