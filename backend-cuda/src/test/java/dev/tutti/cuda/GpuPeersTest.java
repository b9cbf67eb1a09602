package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.block.CudaStreamBlock;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.LaunchParameters;
import dev.tutti.cuda.driver.LinkMatrix;
import dev.tutti.cuda.driver.Nvml;
import dev.tutti.cuda.ipc.CudaIpc;
import dev.tutti.cuda.memory.PinnedBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.opentest4j.TestAbortedException;

/** Tests two GPUs of a machine together. */
@ExtendWith(Gpu.class)
class GpuPeersTest {
  private Cuda cuda;
  private CudaDriver driver;

  @BeforeEach
  void open() {
    cuda = Cuda.get();
    if (cuda.deviceCount() < 2) {
      throw new TestAbortedException("only one GPU here");
    }
    driver = cuda.driver();
  }

  @Test
  void everyPairHasLinks() {
    List<String> busIds = List.of(driver.devices().pciBusId(0), driver.devices().pciBusId(1));
    LinkMatrix matrix = LinkMatrix.of(busIds, new Nvml());
    assertThat(matrix.problem()).isEmpty();
    assertThat(matrix.count(0, 1)).isEqualTo(matrix.count(1, 0));
    assertThat(driver.devices().canAccessPeer(0, 1)).isTrue();
  }

  @Test
  void copiesComputeWhatKernelsDo() throws Exception {
    CopiesCases.sameAsByKernels(ranks(), 2, 1, 37, 5001, 300_001);
    CopiesCases.sameAsByKernels(new CudaRanks(cuda), 2, 12_345_677);
  }

  @Test
  void copiesAreReplayed() throws Exception {
    CopiesCases.replaysReduceWhatIsThereThen(ranks());
    CopiesCases.replaysReduceWhatIsThereThen(new CudaRanks(cuda));
  }

  @Test
  void copiesWaitForALateRankAndNotForever() throws Exception {
    CopiesCases.aLateRankIsWaitedFor(ranks());
    CopiesCases.aMissingRankEndsTheWaits(ranks());
    CopiesCases.aMissingRankEndsTheWaits(new CudaRanks(cuda));
    CopiesCases.aReplayThatAPeerDoesNotMakeFails(ranks());
  }

  @Test
  void modelsAreTrainedByCopies() throws Exception {
    DeviceModels models =
        new DeviceModels(
            ranks().besideHost().with("TUTTI_X_CUDA_COPIES_BYTES", "1"), UnaryOperator.identity());
    for (int i = 0; i < 40; i++) {
      models.train(720_000 + i, 30_000);
    }
  }

  /** Ranks whose copies go in small pieces. */
  private CudaRanks ranks() {
    return new CudaRanks(cuda).with("TUTTI_X_CUDA_COPIES_PIECE_BYTES", "64K");
  }

  @Test
  void eventsOrderStreamsOfTwoDevices() {
    CudaStream first = cuda.device(0).poolStream();
    CudaStream second = cuda.device(1).poolStream();
    PinnedBlock gate = cuda.device(0).pinned().allocate(4);
    gate.segment().fill((byte) 0);
    cuda.device(0).context().enter();
    driver.streams().waitValue(first.handle(), gate.address(), 1);
    CudaEvent done = first.record();
    second.waitFor(done);
    CudaEvent after = second.record();
    assertThat(after.awaitReached(System.nanoTime() + 50_000_000)).isFalse();
    gate.segment().set(ValueLayout.JAVA_INT, 0, 1);
    assertThat(after.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    assertThat(done.isReached()).isTrue();
    cuda.device(0).pinned().free(gate);
  }

  @Test
  void tensorsAreCopiedBetweenDevices() {
    CudaDevice first = cuda.device(0);
    CudaDevice second = cuda.device(1);
    try (CudaStream.Scope _ = first.poolStream().use();
        CudaStream.Scope _ = second.poolStream().use()) {
      Tensor one = first.tensors().copyOf(Tensor.of(1f, 2f, 3f));
      Tensor two = second.tensors().allocate(DType.FLOAT32, 3);
      first.currentStream().await(Until.LONG);
      copy(second, two.segment().address(), one.segment().address(), 12);
      assertThat(second.tensors().toHost(two).toFloatArray()).containsExactly(1, 2, 3);
      copy(first, one.segment().address() + 4, two.segment().address(), 8);
      assertThat(first.tensors().toHost(one).toFloatArray()).containsExactly(1, 1, 2);
    }
  }

  @Test
  void aTensorThatTheOtherDeviceUsesIsKeptAndHadAgain() {
    int bytes = 96 << 20;
    CudaDevice first = cuda.device(0);
    CudaTensors tensors = first.tensors();
    CudaStream far = cuda.device(1).poolStream();
    PinnedBlock gate = first.pinned().allocate(4);
    gate.segment().fill((byte) 0);
    try (CudaStream.Scope _ = first.poolStream().use()) {
      cuda.device(1).context().enter();
      driver.streams().waitValue(far.handle(), gate.address(), 1);
      long address;
      try (Arena arena = Arena.ofConfined()) {
        Tensor tensor = tensors.allocate(arena, DType.INT8, bytes);
        address = tensor.segment().address();
        tensors.useOn(tensor, far);
      }
      try (Arena arena = Arena.ofConfined()) {
        Tensor next = tensors.allocate(arena, DType.INT8, bytes);
        assertThat(next.segment().address()).isNotEqualTo(address);
        gate.segment().set(ValueLayout.JAVA_INT, 0, 1);
        far.await(Until.LONG);
        Tensor again = tensors.allocate(arena, DType.INT8, bytes);
        assertThat(again.segment().address()).isEqualTo(address);
      }
    }
    first.pinned().free(gate);
    tensors.releaseCached();
  }

  @Test
  void aKernelOfTheOtherDeviceWorksOnWhatIsShared() {
    CudaDevice first = cuda.device(0);
    CudaDevice second = cuda.device(1);
    long module = Gpu.loadKernels(second);
    try (CudaIpc ipc = CudaIpc.create(cuda, "the job of GpuPeersTest");
        Arena arena = Arena.ofConfined()) {
      Tensor shared = ipc.allocate(first, arena, DType.FLOAT32, 3);
      first.tensors().copyFromHost(shared, Tensor.of(1f, 2f, 3f));
      first.currentStream().await(Until.LONG);
      LaunchParameters parameters = new LaunchParameters(3);
      parameters.set(0, shared.segment().address());
      parameters.set(1, 3);
      parameters.set(2, 0.5f);
      second.context().enter();
      CudaStream stream = second.poolStream();
      long add = driver.kernels().function(module, Gpu.ADD);
      parameters.launch(driver.kernels(), add, 1, 32, stream.handle());
      stream.await(Until.LONG);
      assertThat(first.tensors().toHost(shared).toFloatArray()).containsExactly(1.5f, 2.5f, 3.5f);
    }
    second.context().enter();
    driver.kernels().unload(module);
  }

  private void copy(CudaDevice by, long target, long source, long bytes) {
    by.context().enter();
    driver.streams().copy(target, source, bytes, by.currentStream().handle());
  }

  @Test
  void eachDeviceHasItsOwnBlocks() {
    CudaStreamBlockProvider provider = new CudaStreamBlockProvider(() -> cuda);
    try (CudaStream.Scope _ = cuda.device(1).poolStream().use();
        CudaStreamBlock block = (CudaStreamBlock) provider.block(Until.LONG)) {
      CudaEvent after = cuda.currentStream().record();
      cuda.device(0).poolStream().await(Until.LONG);
      assertThat(after.isReached()).isFalse();
      block.release();
      assertThat(after.awaitReached(System.nanoTime() + Until.LONG.toNanos())).isTrue();
    }
  }
}
