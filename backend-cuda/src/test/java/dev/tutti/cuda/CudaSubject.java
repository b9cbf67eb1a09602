package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.Registration;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/** The backend as a subject of the contract suites: ranks are threads, each with its own device. */
public class CudaSubject implements ContractSubject {
  private static final InheritableThreadLocal<Integer> RANK = new InheritableThreadLocal<>();

  private final Cuda cuda;
  private final int mostRanks;
  private final Settings settings;

  /**
   * Creates a subject.
   *
   * @param cuda provides the devices
   * @param mostRanks the size of the largest world
   * @param settings settings of the groups
   */
  public CudaSubject(Cuda cuda, int mostRanks, Map<String, String> settings) {
    this.cuda = cuda;
    this.mostRanks = mostRanks;
    this.settings = Settings.ofEnvironment(settings);
  }

  @Override
  public BackendProvider provider() {
    return new CudaBackendProvider(() -> cuda, Optional::empty, NoNccl.HERE);
  }

  @Override
  public int[] worldSizes() {
    return IntStream.rangeClosed(1, mostRanks).toArray();
  }

  @Override
  public Duration timeout() {
    return Duration.ofMinutes(2);
  }

  @Override
  public Settings settings() {
    return settings;
  }

  private CudaDevice device(int rank) {
    return cuda.device(rank % cuda.deviceCount());
  }

  @Override
  public GroupOptions options(GroupOptions options) {
    int rank = options.rank().orElseThrow();
    return options.withDevice(Device.cuda(device(rank).index()));
  }

  @Override
  public Registration enter(int rank) {
    RANK.set(rank);
    CudaStream.Scope scope = device(rank).poolStream().use();
    return () -> {
      scope.close();
      RANK.remove();
    };
  }

  private CudaDevice ownDevice() {
    Integer rank = RANK.get();
    if (rank == null) {
      throw new AssertionError("no thread of a rank");
    }
    CudaDevice device = device(rank);
    if (device.currentStream().equals(device.defaultStream())) {
      // A thread started by a rank; the threads of a rank use groups in their own orders.
      CudaStream.Scope _ = device.poolStream().use();
    }
    return device;
  }

  /** Kernels do not compare the calls of different ranks. */
  @Override
  public boolean detectsMismatches() {
    return false;
  }

  @Override
  public boolean isOnHost() {
    return false;
  }

  @Override
  public Tensor allocate(DType dtype, long... shape) {
    return ownDevice().tensors().copyOf(Tensor.allocate(dtype, shape));
  }

  @Override
  public void copyIn(Tensor host, Tensor target) {
    ownDevice().tensors().copyFromHost(target, host);
  }

  @Override
  public Tensor copyOut(Tensor source) {
    return ownDevice().tensors().toHost(source);
  }
}
