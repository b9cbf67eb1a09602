package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Counts what real processes share, each with its own fake driver. */
@Timeout(900) // its processes may take a minute to start, one after another
@Isolated("counts the descriptors of the process")
class CudaIpcProcessesTest {
  private final FakeMachine machine = new FakeMachine(1);
  private final CudaDevice device = machine.cuda.device(0);
  private final CudaIpc ipc = CudaIpc.create(machine.cuda, IpcChild.JOB);

  @AfterEach
  void close() {
    machine.close();
  }

  private Tensor tensor(Arena arena) {
    return ipc.allocate(device, arena, DType.FLOAT32, 1000);
  }

  @Test
  void countsComeBackFromConsumersThatCloseAndFromThoseThatAreKilled() throws Exception {
    try (IpcProcess first = new IpcProcess("fake");
        IpcProcess second = new IpcProcess("fake")) {
      first.ready();
      second.ready();
      for (int i = 0; i < 50; i++) {
        try (Arena arena = Arena.ofShared()) {
          SharedTensor shared = ipc.share(tensor(arena));
          assertThat((i % 2 == 0 ? first : second).open(shared)).startsWith("opened");
          assertThat(shared.isOpen()).isTrue();
          assertThat(second.open(shared)).isEqualTo("refused " + Reason.USED_UP);
          if (i % 5 == 4) {
            assertThat(first.ask("close")).isEqualTo("closed");
            assertThat(second.ask("close")).isEqualTo("closed");
          }
        }
      }
      ipc.collect();
      assertThat(ipc.outstanding()).isZero();
      Arena arena = Arena.ofShared();
      Tensor tensor = tensor(arena);
      List<SharedTensor> shared = List.of(ipc.share(tensor), ipc.share(tensor), ipc.share(tensor));
      assertThat(first.open(shared.get(0))).startsWith("opened");
      assertThat(first.open(shared.get(1))).startsWith("opened");
      assertThat(second.open(shared.get(2))).startsWith("opened");
      arena.close();
      first.kill();
      ipc.collect();
      assertThat(shared.get(0).isReturned()).isTrue();
      assertThat(shared.get(1).isReturned()).isTrue();
      assertThat(shared.get(2).isOpen()).isTrue();
      assertThat(ipc.pendingReleaseCount()).isOne();
      second.kill();
      ipc.collect();
      assertThat(ipc.outstanding()).isZero();
      assertThat(ipc.pendingReleaseCount()).isZero();
      assertThat(Parts.of(device).sharable().usage().usedBytes()).isZero();
    }
  }

  @Test
  void nothingIsLeftWhenConsumersAreKilledAtAnyPoint() throws Exception {
    new IpcCycles(ipc, device, "fake", 3).run(600, 200);
  }

  @Test
  void aTensorEndsWithTheProcessThatSharedIt() throws Exception {
    try (IpcProcess producer = new IpcProcess("fake").ready()) {
      byte[] opened = handle(producer);
      byte[] unopened = handle(producer);
      ReceivedTensor received = ipc.open(opened);
      assertThat(received.tensor().numel()).isEqualTo(1000);
      assertThat(received.hasProducer()).isTrue();
      producer.kill();
      assertThat(received.hasProducer()).isFalse();
      assertThatThrownBy(received::tensor)
          .isInstanceOf(CudaIpcException.class)
          .hasMessageContaining("which shared the tensor, has ended");
      assertThatThrownBy(() -> ipc.open(unopened))
          .isInstanceOf(CudaIpcException.class)
          .satisfies(
              e -> assertThat(((CudaIpcException) e).reason()).isEqualTo(Reason.PRODUCER_GONE));
      received.close();
      assertThat(ipc.openCount()).isZero();
    }
  }

  @Test
  void aProducerThatEndsWithoutCloseWarnsOfWhatOthersLose(@TempDir Path folder) throws Exception {
    ExitWarnings.check(ipc, "fake", folder);
  }

  private static byte[] handle(IpcProcess producer) throws Exception {
    String answer = producer.ask("share 3");
    assertThat(answer).startsWith("shared ");
    return HexFormat.of().parseHex(answer.substring("shared ".length()));
  }
}
