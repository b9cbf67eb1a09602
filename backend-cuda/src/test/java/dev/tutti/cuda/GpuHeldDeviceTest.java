package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.StreamBlock;
import dev.tutti.StreamBlockStatus;
import dev.tutti.SymmetricMemory;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.ipc.CudaIpc;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Works on GPUs with a held stream: any wait for a whole device would never end. */
@ExtendWith(Gpu.class)
class GpuHeldDeviceTest {
  private static final Duration HOLD = Duration.ofSeconds(40);

  private final Cuda cuda = Cuda.get();

  private StreamBlock hold(CudaStream stream) {
    try (CudaStream.Scope _ = stream.use()) {
      return new CudaStreamBlockProvider(() -> cuda).block(HOLD);
    }
  }

  @Test
  void groupsAreMadeUsedAndClosedMeanwhile() throws Exception {
    List<StreamBlock> blocks = new ArrayList<>();
    for (int d = 0; d < cuda.deviceCount(); d++) {
      StreamBlock block = hold(cuda.device(d).poolStream());
      Until.holds("the hold", () -> block.status() == StreamBlockStatus.RUNNING);
      blocks.add(block);
    }
    try {
      for (int round = 0; round < 2; round++) {
        new CudaRanks(cuda)
            .run(
                2,
                (group, device) -> {
                  new OperationChecks(group, device).all(3);
                  try (SymmetricMemory memory = group.allocateSymmetric(100)) {
                    memory.barrier(0, Duration.ofSeconds(20));
                  }
                  group.store().barrier("closed", 2, Duration.ofSeconds(20));
                });
      }
      assertThat(blocks).allMatch(block -> block.status() == StreamBlockStatus.RUNNING);
    } finally {
      blocks.forEach(StreamBlock::close);
    }
  }

  @Test
  void memoryToShareIsRefusedWhereTheDeviceIsFull() {
    CudaDevice device = cuda.device(0);
    StreamBlock block = hold(device.poolStream());
    try (CudaIpc ipc = CudaIpc.create(cuda, "the job of GpuHeldDeviceTest")) {
      device.context().enter();
      MemoryCalls.Room room = device.context().driver().memory().room();
      long most = room.free() / 2;
      try (Arena arena = Arena.ofConfined()) {
        assertThat(ipc.allocate(device, arena, DType.INT8, most).numel()).isEqualTo(most);
      }
      assertThatThrownBy(() -> ipc.allocate(device, DType.INT8, room.total() - most + 1))
          .isInstanceOf(CudaException.class);
      assertThat(block.status()).isEqualTo(StreamBlockStatus.RUNNING);
    } finally {
      block.close();
    }
    Until.holds("the end", device.poolStream()::isIdle);
    device.sharable().releaseCached();
  }

  /**
   * Checks how many streams make progress at once; a waiting kernel in a stream beyond them would
   * never end.
   */
  @Test
  void enoughStreamsRunAtOnce() {
    CudaDevice device = cuda.device(0);
    List<StreamBlock> blocks = new ArrayList<>();
    List<CudaStream> streams = new ArrayList<>();
    for (int i = 0; i < CudaDevice.POOL_STREAMS; i++) {
      CudaStream stream = device.poolStream();
      streams.add(stream);
      blocks.add(hold(stream));
      stream.record().close();
    }
    long until = System.nanoTime() + 2_000_000_000L;
    while (running(blocks) < blocks.size() && System.nanoTime() < until) {
      Thread.onSpinWait();
    }
    long running = running(blocks);
    blocks.forEach(StreamBlock::close);
    streams.forEach(stream -> stream.await(Until.LONG));
    System.out.println("of " + blocks.size() + " streams " + running + " run at once");
    assertThat(running).isGreaterThanOrEqualTo(8);
    assertThat(device.tensors().allocate(DType.INT8, 1).numel()).isOne();
  }

  private static long running(List<StreamBlock> blocks) {
    return blocks.stream().filter(block -> block.status() == StreamBlockStatus.RUNNING).count();
  }
}
