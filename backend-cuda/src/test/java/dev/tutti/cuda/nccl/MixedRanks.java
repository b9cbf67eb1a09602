package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Runs Tutti ranks and ranks that make PyTorch's calls, each on its own thread and device, on a
 * fake NCCL.
 */
public final class MixedRanks implements AutoCloseable {
  /** The prefix of the keys of the group of all ranks. */
  public static final String PREFIX = "0//cuda//";

  /** How long a Tutti rank waits by default. */
  public static final Duration LIMIT = Duration.ofSeconds(60);

  public final HashStore store = new HashStore();
  public final StallingStore.Stall stall = new StallingStore.Stall();
  public final FakeNccl nccl;
  private final List<Backend> backends = new CopyOnWriteArrayList<>();
  private final FakeMachine machine;
  private final ExecutorService threads = Executors.newCachedThreadPool();

  /** The code that a PyTorch rank runs. */
  public interface Foreign {
    void run(ForeignRank rank) throws Exception;
  }

  /** The code that a Tutti rank runs. */
  public interface Own {
    void run(ProcessGroup group, CudaDevice device) throws Exception;
  }

  /** Opens a machine with some devices. */
  public MixedRanks(int devices) {
    machine = new FakeMachine(devices);
    nccl = new FakeNccl(machine.fake);
  }

  /** Starts a PyTorch rank. */
  public Future<?> foreign(int rank, int size, Foreign body) {
    return foreign(rank, size, PREFIX, body);
  }

  /** Starts a PyTorch rank in a group whose keys have a given prefix. */
  public Future<?> foreign(int rank, int size, String prefix, Foreign body) {
    return threads.submit(
        () -> {
          body.run(new ForeignRank(nccl, machine.cuda.device(rank), store, prefix, rank, size));
          return null;
        });
  }

  /** Starts a PyTorch rank that stays in the communicator of all ranks until a latch opens. */
  public Future<?> foreignUntil(CountDownLatch over, int rank, int size) {
    return foreign(
        rank,
        size,
        each -> {
          Communicator main = each.main();
          assertThat(over.await(4, TimeUnit.MINUTES)).isTrue();
          main.close();
        });
  }

  /** Starts a Tutti rank that creates its communicator when the group is created. */
  public Future<?> own(int rank, int size, Own body) {
    return own(rank, size, LIMIT, body);
  }

  public Future<?> own(int rank, int size, Duration timeout, Own body) {
    return start(rank, options(rank, size, false, timeout), body);
  }

  /** Starts a Tutti rank that creates its communicators on first use. */
  public Future<?> lazy(int rank, int size, Own body) {
    return lazy(rank, size, LIMIT, body);
  }

  public Future<?> lazy(int rank, int size, Duration timeout, Own body) {
    return start(rank, options(rank, size, true, timeout), body);
  }

  /** Returns the provider of NCCL, which keeps the backends that it creates. */
  private BackendProvider provider() {
    BackendProvider provider =
        new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl);
    return (BackendProvider)
        Proxy.newProxyInstance(
            BackendProvider.class.getClassLoader(),
            new Class<?>[] {BackendProvider.class},
            (proxy, method, arguments) -> {
              try {
                Object result = method.invoke(provider, arguments);
                if (result instanceof Backend backend) {
                  backends.add(backend);
                }
                return result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** Returns, for the backend of each Tutti rank, whether barriers run on it. */
  public List<Boolean> takeBarriers() {
    return backends.stream().map(Backend::takesBarriers).toList();
  }

  private GroupOptions options(int rank, int size, boolean lazy, Duration timeout) {
    return GroupOptions.DEFAULT
        .withStore(StallingStore.of(store, stall))
        .withRank(rank)
        .withSize(size)
        .withDevice(Device.cuda(rank))
        .withProvider(provider())
        .withSettings(
            Settings.ofEnvironment(
                Map.of("TUTTI_CLOSE_TIMEOUT", "60s", "TUTTI_NCCL_LAZY", lazy ? "1" : "0")))
        .withTimeout(timeout);
  }

  private Future<?> start(int rank, GroupOptions options, Own body) {
    return threads.submit(
        () -> {
          CudaDevice device = machine.cuda.device(rank);
          try (CudaStream.Scope _ = device.poolStream().use();
              ProcessGroup group = ProcessGroup.init(options)) {
            body.run(group, device);
          }
          return null;
        });
  }

  /** Holds a stream until the latch is opened. */
  public CountDownLatch hold(CudaStream stream) {
    return machine.hold(stream);
  }

  /** Waits for ranks; throws the first failure. */
  public static void end(Future<?>... all) throws Exception {
    for (Future<?> each : all) {
      each.get(4, TimeUnit.MINUTES);
    }
  }

  public static Tensor floats(CudaDevice device, float... values) {
    return device.tensors().copyOf(Tensor.of(values));
  }

  public static float[] read(CudaDevice device, Tensor tensor) {
    return device.tensors().toHost(tensor).toFloatArray();
  }

  /** Returns the keys under which the ids of the group's communicators were stored. */
  public List<String> keys() {
    List<String> found = new ArrayList<>();
    for (String key : List.of("0", "0:1", "0:2", "1:2")) {
      if (store.check(List.of(PREFIX + key))) {
        found.add(key);
      }
    }
    return found;
  }

  /** Closes everything and checks that nothing is left. */
  @Override
  public void close() {
    threads.shutdownNow();
    Until.holds("the end of all communicators", () -> nccl.communicators() == 0);
    machine.close();
  }
}
