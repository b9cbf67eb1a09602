package dev.tutti.cuda;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.ChannelLayout;
import java.io.BufferedWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Times all-reduce (bfloat16, sum) of backend {@code cuda} as one rank, with one process and one
 * GPU per rank. It times eager calls and CUDA graphs, ordinary and symmetric memory, and the host
 * cost of a call. Times are in microseconds: the slowest rank of each series, the median of five
 * series. Rank 0 writes JSON lines.
 *
 * <p>Arguments: the output file, a new file for the rendezvous, the rank, the number of ranks, the
 * maximum size in bytes.
 */
public final class GpuBench {
  private static final int SERIES = 5;
  private static final int WARM_BYTES = 64 << 10;
  private static final int CAPTURED = 20;
  private static final int MIB = 1 << 20;
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final long[] SIZES = {
    1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, MIB, 2 * MIB, 4 * MIB,
    8 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1L << 30
  };

  private final Path output;
  private final ProcessGroup group;
  private final int ranks;
  private final long most;
  private final CudaDevice device;
  private final CudaDriver driver;
  private final CudaStream stream;
  private final Tensor slowest;
  private final long start;
  private final long stop;

  private GpuBench(Path output, ProcessGroup group, CudaDevice device, long most) {
    this.output = output;
    this.group = group;
    this.ranks = group.size();
    this.most = most;
    this.device = device;
    this.driver = device.context().driver();
    this.stream = device.currentStream();
    this.slowest = device.tensors().allocate(DType.FLOAT64, 1);
    device.context().enter();
    this.start = driver.events().create(EventCalls.Purpose.TIMING);
    this.stop = driver.events().create(EventCalls.Purpose.TIMING);
  }

  /** Runs all measurements. */
  public static void main(String[] args) throws Exception {
    int rank = Integer.parseInt(args[2]);
    CudaDevice device = Cuda.get().device(rank);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod("file://" + args[1])
            .withRank(rank)
            .withSize(Integer.parseInt(args[3]))
            .withDevice(Device.cuda(rank))
            .withProvider(new CudaBackendProvider())
            .withTimeout(LIMIT);
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      new GpuBench(Path.of(args[0]), group, device, Long.parseLong(args[4])).run();
    }
  }

  private void run() throws Exception {
    Tensor plain = device.tensors().allocate(DType.BFLOAT16, most / 2);
    try (SymmetricMemory memory = group.allocateSymmetric(most)) {
      Tensor shared = memory.buffer(group.rank(), DType.BFLOAT16, 0, most / 2);
      cost(plain);
      heap(plain);
      // The maximum of the times is another reduction, after which the compiler starts over.
      time(plain.narrow(0, 0, SIZES[0] / 2), SIZES[0]);
      for (long bytes : SIZES) {
        if (bytes <= most) {
          measure("ordinary", plain.narrow(0, 0, bytes / 2), bytes);
          measure("symmetric", shared.narrow(0, 0, bytes / 2), bytes);
        }
      }
      meet();
    }
    group.store().barrier("bench-end", ranks, LIMIT);
  }

  private void fill(Tensor tensor, byte value) {
    driver.streams().fill(tensor.segment().address(), value, tensor.byteSize(), stream.handle());
  }

  private record Times(double eager, double graph) {}

  /** Checks both ends of a sum of powers of two, then times the call. */
  private Times time(Tensor tensor, long bytes) throws Exception {
    fill(tensor, (byte) 0x3f);
    group.allReduce(tensor, ReduceOp.SUM);
    check(tensor.narrow(0, 0, Math.min(512, bytes / 2)));
    check(tensor.narrow(0, bytes / 2 - Math.min(512, bytes / 2), Math.min(512, bytes / 2)));
    fill(tensor, (byte) 0);
    int calls = bytes <= MIB ? 200 : bytes <= 64L * MIB ? 40 : 8;
    for (int i = 0; bytes <= WARM_BYTES && i < 60_000; i++) {
      group.allReduce(tensor, ReduceOp.SUM); // the compiler may be optimizing other code by now
    }
    double eager =
        series(
            calls,
            () -> {
              for (int i = 0; i < calls; i++) {
                group.allReduce(tensor, ReduceOp.SUM);
              }
            });
    return new Times(eager, graph(tensor, bytes));
  }

  private void measure(String memory, Tensor tensor, long bytes) throws Exception {
    Times times = time(tensor, bytes);
    if (group.rank() == 0) {
      AllReduceLimits.Algorithm algorithm =
          AllReduceLimits.ofRanks(ranks)
              .choose(bytes, DType.BFLOAT16, ReduceOp.Kind.SUM, ChannelLayout.ofRanks(ranks));
      write(
          String.format(
              Locale.ROOT,
              "{\"peer\": \"tutti\", \"memory\": \"%s\", \"ranks\": %d, \"bytes\": %d,"
                  + " \"algorithm\": \"%s\", \"eager_us\": %.2f, \"graph_us\": %.2f}",
              memory,
              ranks,
              bytes,
              algorithm,
              times.eager,
              times.graph));
    }
  }

  private void check(Tensor part) {
    Tensor host = device.tensors().toHost(part);
    double one = 0.74609375; // 0x3f3f as bfloat16
    for (long i = 0; i < host.numel(); i++) {
      double sum = host.getDouble(i);
      if (Math.abs(sum - ranks * one) > ranks * one / 128) {
        throw new AssertionError("element " + i + " of " + part + " is " + sum);
      }
    }
  }

  private double graph(Tensor tensor, long bytes) throws Exception {
    GraphCalls graphs = driver.graphs();
    int captured = bytes <= 16L * MIB ? CAPTURED : 2;
    meet();
    graphs.beginCapture(stream.handle());
    for (int i = 0; i < captured; i++) {
      group.allReduce(tensor, ReduceOp.SUM);
    }
    long graph = graphs.endCapture(stream.handle());
    long executable = graphs.instantiate(graph);
    int replays = bytes <= MIB ? 10 : bytes <= 16L * MIB ? 3 : 2;
    double time =
        series(
            replays * captured,
            () -> {
              for (int i = 0; i < replays; i++) {
                graphs.launch(executable, stream.handle());
              }
            });
    meet();
    graphs.destroyExecutable(executable);
    graphs.destroy(graph);
    return time;
  }

  private double series(int calls, Runnable work) throws Exception {
    double[] times = new double[SERIES];
    for (int s = -2; s < SERIES; s++) {
      meet();
      device.context().enter();
      driver.events().record(start, stream.handle());
      work.run();
      driver.events().record(stop, stream.handle());
      stream.await(LIMIT);
      double micros = slowestOf(driver.events().elapsedMillis(start, stop) * 1e3 / calls);
      if (s >= 0) {
        times[s] = micros;
      }
    }
    Arrays.sort(times);
    return times[SERIES / 2];
  }

  /** Times calls while the device lags by less than its queue holds. */
  private void cost(Tensor tensor) throws Exception {
    Tensor small = tensor.narrow(0, 0, 512);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int calls = 100;
    for (int i = 0; i < 30_000; i++) {
      group.allReduce(small, ReduceOp.SUM);
    }
    long module = Gpu.loadKernels(device);
    long nothing = driver.kernels().function(module, Gpu.NOTHING);
    LaunchParameters parameters = new LaunchParameters(8);
    double[] bare = new double[200];
    double[] nanos = new double[bare.length];
    long least = Long.MAX_VALUE;
    for (int s = 0; s < nanos.length; s++) {
      meet();
      long bytes = threads.getCurrentThreadAllocatedBytes();
      long before = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        group.allReduce(small, ReduceOp.SUM);
      }
      nanos[s] = (double) (System.nanoTime() - before) / calls;
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - bytes);
      meet();
      before = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        parameters.launch(driver.kernels(), nothing, 1, 128, stream.handle());
      }
      bare[s] = (double) (System.nanoTime() - before) / calls;
    }
    Arrays.sort(nanos);
    Arrays.sort(bare);
    if (group.rank() == 0) {
      write(
          String.format(
              Locale.ROOT,
              "{\"cost\": \"allReduce of 1 KiB\", \"ranks\": %d, \"host_ns_median\": %.0f,"
                  + " \"host_ns_least\": %.0f, \"launch_alone_ns_median\": %.0f,"
                  + " \"launch_alone_ns_least\": %.0f, \"heap_bytes_of_%d_calls\": %d}",
              ranks,
              nanos[nanos.length / 2],
              nanos[0],
              bare[bare.length / 2],
              bare[0],
              calls,
              least));
    }
  }

  /** Counts what void calls of other operations allocate once the compiler has finished. */
  private void heap(Tensor tensor) throws Exception {
    Tensor one = tensor.narrow(0, 0, 64);
    Tensor all = tensor.narrow(0, 64, 64L * ranks);
    Map<String, Runnable> calls = new LinkedHashMap<>();
    calls.put("broadcast", () -> group.broadcast(one, 0));
    calls.put("reduce", () -> group.reduce(one, ReduceOp.SUM, 0));
    calls.put("allGatherInto", () -> group.allGatherInto(all, one));
    calls.put("reduceScatterInto", () -> group.reduceScatterInto(one, all, ReduceOp.SUM));
    calls.put("barrier", group::barrier);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    for (Map.Entry<String, Runnable> call : calls.entrySet()) {
      long least = Long.MAX_VALUE;
      double fastest = Double.MAX_VALUE;
      for (int s = 0; s < 250; s++) {
        meet();
        long before = threads.getCurrentThreadAllocatedBytes();
        long start = System.nanoTime();
        for (int i = 0; i < 100; i++) {
          call.getValue().run();
        }
        fastest = Math.min(fastest, (System.nanoTime() - start) / 100.0);
        least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
      }
      if (group.rank() == 0) {
        write(
            String.format(
                Locale.ROOT,
                "{\"cost\": \"%s\", \"ranks\": %d, \"host_ns_least\": %.0f,"
                    + " \"heap_bytes_of_100_calls\": %d}",
                call.getKey(),
                ranks,
                fastest,
                least));
      }
    }
  }

  /** Waits for this rank's stream and for all ranks. */
  private void meet() {
    group.barrier();
    stream.await(LIMIT);
  }

  private double slowestOf(double micros) {
    device.tensors().copyFromHost(slowest, Tensor.of(micros));
    group.allReduce(slowest, ReduceOp.MAX);
    return device.tensors().toHost(slowest).toDoubleArray()[0];
  }

  private void write(String line) throws Exception {
    try (BufferedWriter writer =
        Files.newBufferedWriter(output, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
      writer.write(line);
      writer.newLine();
    }
    System.out.println(line);
  }
}
