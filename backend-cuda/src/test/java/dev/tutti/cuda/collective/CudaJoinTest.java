package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.ProcessGroup;
import dev.tutti.TuttiException;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Warnings;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests what keeps ranks from joining a group. */
class CudaJoinTest {
  private final FakeMachine machine = new FakeMachine(4);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void ranksOfOtherLimitsDoNotBegin() {
    CudaRanks ranks = new CudaRanks(cuda).withOnLast("TUTTI_X_CUDA_ONE_SHOT_BYTES", "0");
    assertThatThrownBy(() -> ranks.run(2, (group, device) -> {}))
        .hasStackTraceContaining("rank 1 has TUTTI_X_CUDA_ONE_SHOT_BYTES=0 TUTTI_X_CUDA_TWO_SHOT")
        .hasStackTraceContaining("these settings must be the same on all ranks");
  }

  @Test
  void devicesThatDoNotReachEachOtherAreRefused() {
    machine.fake.cutLink(0, 1);
    assertThatThrownBy(() -> new CudaRanks(cuda).run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("cannot reach the memory of rank")
        .hasStackTraceContaining("NVLink");
  }

  @Test
  void sharedDevicesNeedLeave() {
    assertThatThrownBy(
            () ->
                new CudaRanks(cuda)
                    .onOneDevice()
                    .with("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "0")
                    .run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("ranks 0 and 1 have the same device 0000:1B:00.0");
  }

  @Test
  void ranksOfAProcessThatShareADeviceAreWarnedOf() throws Exception {
    try (Warnings warnings = new Warnings(CudaWorld.class, line -> true)) {
      new CudaRanks(cuda).run(2, (group, device) -> {});
      assertThat(warnings.messages()).isEmpty();
      new CudaRanks(cuda).onOneDevice().run(3, (group, device) -> {});
      assertThat(warnings.messages())
          .containsExactly(
              "rank 0: rank 1 of this process also uses cuda:0; while the host is busy, the driver"
                  + " may put copies of both into one queue, where they wait for each other until"
                  + " their deadlines; give each rank a process or a device of its own");
    }
  }

  @Test
  void aDirectoryWithoutRoomForSocketsIsNamed() {
    assertThatThrownBy(
            () -> new CudaRanks(cuda).with("TMPDIR", "/nowhere").run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("is its directory writable?");
  }

  @Test
  void tooManyRanksAreRefused() {
    assertThatThrownBy(
            () ->
                ProcessGroup.init(
                        new CudaRanks(cuda).options(new dev.tutti.store.HashStore(), 0, 9))
                    .close())
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("8 ranks at most");
  }

  @ParameterizedTest
  @CsvSource({
    "NVSHMEM, Tutti does not support symmetric memory of NVSHMEM",
    "NCCL, Tutti does not support symmetric memory of NCCL",
    "cuda, 'must be one of CUDA, NVSHMEM and NCCL'"
  })
  void otherSymmetricMemoryIsRefused(String name, String reason) throws Exception {
    new CudaRanks(cuda).with("TORCH_SYMMMEM", "CUDA").run(1, (group, device) -> {});
    assertThatThrownBy(
            () -> new CudaRanks(cuda).with("TORCH_SYMMMEM", name).run(2, (group, device) -> {}))
        .hasStackTraceContaining(
            "TORCH_SYMMMEM='" + name + "' (from the program) cannot be read: " + reason);
  }
}
