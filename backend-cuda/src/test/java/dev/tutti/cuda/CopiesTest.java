package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.LinkCalls.Link;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests all-reduces by copy engines on fake devices, and when they are used. */
class CopiesTest {
  private static final CallOptions BESIDE = CallOptions.DEFAULT.withComputationBeside();

  private final FakeMachine machine = new FakeMachine(4);

  @AfterEach
  void close() {
    machine.close();
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .with("TUTTI_X_CUDA_COPIES_BYTES", "1")
        .with("TUTTI_X_CUDA_COPIES_PIECE_BYTES", "1K");
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void theResultIsThatOfKernels(int size) throws Exception {
    machine.fake.races().findAcrossThreads();
    CopiesCases.sameAsByKernels(ranks(), size, 1, 7, 37, 257, 5001);
    assertThat(machine.fake.races().found()).isEmpty();
  }

  @Test
  void replaysReduceWhatIsThereThen() throws Exception {
    machine.fake.races().findAcrossThreads();
    CopiesCases.replaysReduceWhatIsThereThen(ranks());
    assertThat(machine.fake.races().found()).isEmpty();
  }

  @Test
  void aMissingRankEndsTheWaits() throws Exception {
    CopiesCases.aMissingRankEndsTheWaits(ranks());
  }

  @Test
  void aReplayThatAPeerDoesNotMakeFails() throws Exception {
    CopiesCases.aReplayThatAPeerDoesNotMakeFails(ranks());
  }

  @Test
  void aLateRankIsWaitedFor() throws Exception {
    CopiesCases.aLateRankIsWaitedFor(ranks());
  }

  @ParameterizedTest
  @CsvSource({
    "switch, false, 4096, cuda/copies",
    "switch, false, 4092, cuda/one-shot",
    "switch, true, 4096, cuda/one-shot",
    "none, false, 4096, cuda/one-shot"
  })
  void copiesAreTakenBesideComputation(String links, boolean inOneDevice, int bytes, String path)
      throws Exception {
    machine.fake.setLinks(_ -> links.equals("none") ? List.of() : List.of(new Link.ToSwitch()));
    CudaRanks ranks = ranks().with("TUTTI_X_CUDA_COPIES_BYTES", "4K");
    (inOneDevice ? ranks.onOneDevice() : ranks)
        .run(
            2,
            (group, device) -> {
              try (SymmetricMemory memory = group.allocateSymmetric(bytes)) {
                Tensor tensor = memory.buffer(group.rank(), DType.FLOAT32, 0, bytes / 4);
                group.allReduce(tensor, ReduceOp.SUM, BESIDE).await();
                Tensor other = device.tensors().allocate(DType.FLOAT32, bytes / 4);
                group.allReduce(other, ReduceOp.SUM, BESIDE).await();
                group.allReduce(tensor, ReduceOp.MAX, BESIDE).await();
                group.allReduce(tensor, ReduceOp.SUM);
                device.currentStream().await(Until.LONG);
                Map<String, Long> used = group.diagnostics().usageByPath();
                if (path.endsWith("copies")) {
                  assertThat(used).containsEntry(path, 1L).containsEntry("cuda/one-shot", 3L);
                } else {
                  assertThat(used).containsOnly(Map.entry(path, 4L));
                }
              }
            });
  }

  @Test
  void whatCannotBeCopiedIsRefused() throws Exception {
    CallOptions copies = CallOptions.DEFAULT.withAlgorithm("copies");
    ranks()
        .onOneDevice()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, 5);
              assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM, copies))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("ranks of one process share a device");
            });
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, 5);
              assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.MAX, copies))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("sums and means of real numbers only");
            });
  }
}
