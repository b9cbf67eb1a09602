package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.driver.LinkCalls.Link;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests which algorithm reduces. */
class CudaAlgorithmsTest {
  private final FakeMachine machine = new FakeMachine(4);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  @Test
  void theSizeChoosesTheAlgorithm() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_ONE_SHOT_BYTES", "1K")
        .with("TUTTI_X_CUDA_TWO_SHOT_BYTES", "4K")
        .run(
            2,
            (group, device) -> {
              for (int floats : new int[] {256, 257, 1024, 1025}) {
                CudaRanks.sum(
                        group, device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, floats)))
                    .await();
              }
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_sum"))
        .containsExactlyInAnyOrder(
            "tutti_one_shot_f32_sum",
            "tutti_one_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_chunks_f32_sum",
            "tutti_chunks_f32_sum");
  }

  @Test
  void partsOfUnequalSizeHaveKernelsOfTheirOwn() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_TWO_SHOT_BYTES", "4K")
        .run(
            2,
            (group, device) -> {
              for (long[] splits : new long[][] {{500, 3}, {0, 600}, {200, 200}}) {
                long total = splits[0] + splits[1];
                Tensor input = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, total));
                Tensor own =
                    device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, splits[group.rank()]));
                group.reduceScatterInto(own, input, splits, ReduceOp.SUM);
                group.reduceScatterInto(own, input, splits, ReduceOp.MAX);
              }
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_"))
        .containsExactlyInAnyOrder(
            "tutti_unequal_two_shot_f32_sum",
            "tutti_unequal_two_shot_f32_sum",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_sum",
            "tutti_unequal_chunks_f32_sum",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_other",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_other",
            "tutti_two_shot_f32_other");
  }

  /** Two devices: connected by a switch, linked directly, without links, and with NVML missing. */
  @ParameterizedTest
  @CsvSource({
    "switch, cuda/one-shot",
    "direct, cuda/one-shot",
    "none, cuda/two-shot",
    "unknown, cuda/one-shot"
  })
  void peersWithoutNvlinkHaveLimitsOfTheirOwn(String links, String path) throws Exception {
    machine.fake.setLinks(
        busId ->
            switch (links) {
              case "switch" -> List.of(new Link.ToSwitch());
              case "direct" ->
                  List.of(
                      new Link.ToDevice(
                          busId.equals("0000:1B:00.0") ? "00000000:1c:00.0" : "00000000:1b:00.0"));
              case "none" -> List.of();
              default -> throw new BackendException("no NVML");
            });
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_LANES", "32")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = Tensor.allocate(DType.FLOAT32, (512 << 10) / Float.BYTES);
              CudaRanks.sum(group, device.tensors().copyOf(tensor)).await();
              assertThat(group.diagnostics().usageByPath()).containsExactly(entry(path, 1L));
            });
  }

  @Test
  void theCallerChoosesTheAlgorithm() throws Exception {
    String[] asked = {"chunks", "copies", "two-shot", "one-shot"};
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              for (String algorithm : asked) {
                group
                    .allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT.withAlgorithm(algorithm))
                    .await();
              }
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(16, 32);
              group.barrier();
              assertThat(group.diagnostics().usageByPath())
                  .containsExactly(
                      entry("cuda/barrier", 1L),
                      entry("cuda/chunks", 1L),
                      entry("cuda/copies", 1L),
                      entry("cuda/one-shot", 1L),
                      entry("cuda/two-shot", 1L));
              Tensor large = device.tensors().allocate(DType.FLOAT32, 4 << 20);
              refused(group, large, "one-shot", "16777216 bytes do not fit into");
              refused(
                  group, large, "ring", "its algorithms are chunks, copies, one-shot, two-shot");
              CudaRanks.sum(group, tensor).await();
              assertThat(group.diagnostics().usageByPath()).containsEntry("cuda/one-shot", 2L);
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_sum"))
        .filteredOn(name -> name.contains("chunks"))
        .hasSize(2);
  }

  private static void refused(ProcessGroup group, Tensor tensor, String algorithm, String reason) {
    CallOptions options = CallOptions.DEFAULT.withAlgorithm(algorithm);
    assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM, options))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining(algorithm)
        .hasMessageContaining(reason)
        .hasMessageContaining("rank " + group.rank());
  }
}
