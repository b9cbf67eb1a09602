package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** Runs ranks on CUDA devices as threads, each with its own stream. */
public final class CudaRanks {
  private static final Map<String, String> SMALL =
      Map.of(
          "TUTTI_X_CUDA_LANES",
          "4",
          "TUTTI_X_CUDA_CHUNK_BYTES",
          "2K",
          "TUTTI_CLOSE_TIMEOUT", // longer than a rank may lag behind the others
          "60s",
          "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES",
          "1");

  private static final Duration LIMIT = Duration.ofMinutes(2);

  private final Cuda cuda;
  private Settings settings = Settings.ofEnvironment(SMALL);
  private Duration timeout = LIMIT;
  private Time time = Time.SYSTEM;
  private UnaryOperator<Settings> ofLast = UnaryOperator.identity();
  private int devices;
  private BackendProvider provider;
  private boolean withHost;

  /** The code that a rank runs. */
  public interface Body {
    void run(ProcessGroup group, CudaDevice device) throws Exception;
  }

  /** Begins to sum a tensor. */
  public static Work sum(ProcessGroup group, Tensor tensor) {
    return group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT);
  }

  /** Gives each rank its own device, as long as there are enough. */
  public CudaRanks(Cuda cuda) {
    this.cuda = cuda;
    this.devices = cuda.deviceCount();
    this.provider = new CudaBackendProvider(() -> cuda, Optional::empty, NoNccl.HERE);
  }

  public CudaRanks onOneDevice() {
    devices = 1;
    return this;
  }

  public CudaRanks on(BackendProvider newProvider) {
    provider = newProvider;
    return this;
  }

  /** Gives the groups a backend for the host beside that for devices. */
  public CudaRanks besideHost() {
    withHost = true;
    return this;
  }

  public CudaRanks with(String name, String value) {
    settings = settings.with(name, value);
    return this;
  }

  /** Gives the last rank a setting that differs from the others. */
  public CudaRanks withOnLast(String name, String value) {
    ofLast = chosen -> chosen.with(name, value);
    return this;
  }

  /** Sets the timeout that the groups have once all ranks have joined. */
  public CudaRanks within(Duration newTimeout) {
    timeout = newTimeout;
    return this;
  }

  /** Sets the time of the groups; devices have that of the machine. */
  public CudaRanks withTime(Time newTime) {
    time = newTime;
    return this;
  }

  public GroupOptions options(HashStore store, int rank, int size) {
    int device = rank % devices;
    GroupOptions some =
        withHost
            ? GroupOptions.DEFAULT.withProvider(new HostAndDevice(provider, device))
            : GroupOptions.DEFAULT.withDevice(Device.cuda(device)).withProvider(provider);
    return some.withStore(store)
        .withRank(rank)
        .withSize(size)
        .withSettings(rank == size - 1 ? ofLast.apply(settings) : settings)
        .withTime(time)
        .withTimeout(LIMIT);
  }

  /** Runs all ranks; throws the first failure. */
  public void run(int size, Body body) throws Exception {
    run(new HashStore(), size, body);
  }

  /** Runs all ranks at a store; throws the first failure. */
  public void run(HashStore store, int size, Body body) throws Exception {
    CountDownLatch joined = new CountDownLatch(size);
    try (ExecutorService threads = Executors.newFixedThreadPool(size)) {
      List<Future<?>> futures = new ArrayList<>();
      for (int r = 0; r < size; r++) {
        int rank = r;
        Callable<?> call =
            () -> {
              CudaDevice device = cuda.device(rank % devices);
              try (CudaStream.Scope _ = device.poolStream().use();
                  ProcessGroup group = join(options(store, rank, size), joined)) {
                // What a rank does in its body shall not meet another that still joins.
                if (!joined.await(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                  throw new AssertionError("a rank has not joined");
                }
                group.setTimeout(timeout);
                body.run(group, device);
              }
              return null;
            };
        futures.add(threads.submit(call));
      }
      Throwable first = null;
      for (Future<?> future : futures) {
        try {
          future.get(2 * LIMIT.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException e) {
          if (first == null) {
            first = e.getCause();
          } else {
            first.addSuppressed(e.getCause());
          }
        }
      }
      if (first instanceof Exception e) {
        throw e;
      }
      if (first instanceof Error e) {
        throw e;
      }
    }
  }

  private static ProcessGroup join(GroupOptions options, CountDownLatch joined) {
    try {
      return ProcessGroup.init(options);
    } finally {
      joined.countDown();
    }
  }
}
