package dev.tutti.cuda;

import com.sun.management.ThreadMXBean;
import dev.tutti.StreamBlock;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Prints the cost of calls on this machine's GPU: host time as the median of several series, and
 * bytes allocated in the Java heap. Then prints which calls wait for a held stream.
 */
public final class GpuCosts {
  private static final int SERIES = 40;
  private static final int CALLS = 500;

  private final Cuda cuda = Cuda.get();
  private final CudaDevice device = cuda.device(0);
  private final CudaDriver driver = device.context().driver();
  private final CudaStream stream = device.poolStream();
  private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private GpuCosts() {}

  /** Prints all numbers. */
  public static void main(String[] args) throws Exception {
    new GpuCosts().run();
  }

  private void run() throws Exception {
    long module = Gpu.loadKernels(device);
    long nothing = driver.kernels().function(module, Gpu.NOTHING);
    LaunchParameters parameters = new LaunchParameters(8);
    long handle = stream.handle();
    Parts.of(cuda).findings().forEach(System.out::println);
    System.out.println("call                                  ns    bytes");
    cost("empty loop", () -> {});
    cost("DeviceContext.enter", () -> device.context().enter());
    cost("cuLaunchKernel alone", () -> launch(nothing, handle, parameters));
    cost(
        "enter, stream, 8 parameters, launch",
        () -> {
          CudaStream current = device.currentStream();
          device.context().enter();
          for (int i = 0; i < 8; i++) {
            parameters.set(i, (long) i);
          }
          launch(nothing, current.handle(), parameters);
        });
    cost("cuLaunchKernel alone, again", () -> launch(nothing, handle, parameters));
    long event = driver.events().create(EventCalls.Purpose.ORDER);
    cost("cuEventRecord", () -> driver.events().record(event, handle));
    stream.await(Duration.ofSeconds(10));
    cost("cuEventQuery of a reached one", () -> driver.events().isReached(event));
    cost("cuStreamWaitEvent of a reached one", () -> driver.streams().waitFor(handle, event));
    cost("cuStreamQuery", () -> driver.streams().isIdle(handle));
    long words = driver.memory().allocateHost(64);
    cost("cuStreamWriteValue32", () -> driver.streams().writeValue(handle, words, 1));
    cost("cuMemcpyAsync of 32 bytes", () -> driver.streams().copy(words + 32, words, 32, handle));
    cost("CudaStream.record and close", () -> stream.record().close());
    CudaStreamBlockProvider provider = new CudaStreamBlockProvider(() -> cuda);
    try (CudaStream.Scope _ = stream.use()) {
      cost("StreamBlock made and closed", () -> provider.block(Duration.ZERO).close());
      latency(provider);
      stalls(module, provider);
    }
    driver.memory().freeHost(words);
    driver.events().destroy(event);
  }

  private void launch(long function, long handle, LaunchParameters parameters) {
    parameters.launch(driver.kernels(), function, 1, 1, handle);
  }

  private void cost(String name, Runnable call) {
    for (int i = 0; i < 30; i++) {
      series(call);
    }
    double[] nanos = new double[SERIES];
    long bytes = threads.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < SERIES; i++) {
      nanos[i] = series(call);
    }
    bytes = threads.getCurrentThreadAllocatedBytes() - bytes;
    Arrays.sort(nanos);
    System.out.printf(
        Locale.ROOT,
        "%-36s %5.0f %8.2f%n",
        name,
        nanos[SERIES / 2],
        (double) bytes / SERIES / CALLS);
  }

  private double series(Runnable call) {
    long start = System.nanoTime();
    for (int i = 0; i < CALLS; i++) {
      call.run();
    }
    long nanos = System.nanoTime() - start;
    driver.streams().synchronize(stream.handle());
    return (double) nanos / CALLS;
  }

  private void latency(CudaStreamBlockProvider provider) {
    double[] micros = new double[100];
    for (int i = 0; i < micros.length; i++) {
      StreamBlock block = provider.block(Duration.ZERO);
      try (CudaEvent after = stream.record()) {
        Until.holds("the start", () -> block.status().code() == 1);
        long start = System.nanoTime();
        block.release();
        after.awaitReached(start + 1_000_000_000L);
        micros[i] = (System.nanoTime() - start) / 1e3;
      }
      block.close();
    }
    Arrays.sort(micros);
    System.out.printf(
        Locale.ROOT,
        "from abort of a block to the stream's next event: median %.0f, worst %.0f us%n",
        micros[50],
        micros[99]);
  }

  /** Tries calls while a stream is held for half a second. */
  private void stalls(long module, CudaStreamBlockProvider provider) throws Exception {
    long memory = driver.memory().allocate(4 << 20);
    long pinned = driver.memory().allocateHost(4 << 20);
    stall(provider, "cuMemAlloc of 64 MiB", () -> driver.memory().allocate(64 << 20));
    stall(provider, "cuMemFree", () -> driver.memory().free(memory));
    stall(provider, "cuMemHostAlloc of 4 MiB", () -> driver.memory().allocateHost(4 << 20));
    stall(provider, "cuMemFreeHost", () -> driver.memory().freeHost(pinned));
    stall(provider, "cuModuleGetFunction", () -> driver.kernels().function(module, Gpu.ADD));
    stall(provider, "cuModuleLoadData", () -> Gpu.loadKernels(device));
    stall(provider, "cuStreamCreate", () -> driver.streams().create(0));
    CudaStream other = device.poolStream();
    stall(
        provider,
        "launch in another stream",
        () -> {
          long function = driver.kernels().function(module, Gpu.NOTHING);
          launch(function, other.handle(), new LaunchParameters(1));
          other.await(Duration.ofSeconds(5));
        });
    var properties = new Properties(0, Share.POSIX_FD, false);
    long bytes = driver.virtualMemory().granularity(properties);
    long[] mapped = new long[2];
    stall(
        provider,
        "cuMemCreate, cuMemMap, cuMemSetAccess",
        () -> {
          mapped[0] = driver.virtualMemory().create(bytes, properties);
          mapped[1] = driver.virtualMemory().reserve(bytes);
          driver.virtualMemory().map(mapped[1], bytes, mapped[0]);
          driver.virtualMemory().allow(mapped[1], bytes, 0);
        });
    stall(
        provider,
        "cuMemUnmap, cuMemRelease",
        () -> {
          driver.virtualMemory().unmap(mapped[1], bytes);
          driver.virtualMemory().release(mapped[0]);
        });
  }

  private void stall(CudaStreamBlockProvider provider, String name, Runnable call)
      throws InterruptedException {
    AtomicBoolean done = new AtomicBoolean();
    StreamBlock block = provider.block(Duration.ofSeconds(20));
    Until.holds("the start", () -> block.status().code() == 1);
    long start = System.nanoTime();
    Thread thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  device.context().enter();
                  call.run();
                  done.set(true);
                });
    thread.join(500);
    boolean waits = !done.get();
    double micros = (System.nanoTime() - start) / 1e3;
    block.close();
    thread.join(20_000);
    System.out.printf(
        Locale.ROOT,
        "while a stream is held: %-40s %s%n",
        name,
        waits ? "WAITS for it" : String.format(Locale.ROOT, "done after %.0f us", micros));
    stream.await(Duration.ofSeconds(20));
  }
}
