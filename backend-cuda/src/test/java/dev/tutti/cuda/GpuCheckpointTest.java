package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.checkpoint.Saving;
import dev.tutti.cuda.provider.CudaDeviceTensors;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Saves and loads tensors on this machine's first GPU, which two ranks share. */
@ExtendWith(Gpu.class)
class GpuCheckpointTest {
  private static final int RANKS = 2;
  private static final List<String> NAMES = List.of("large", "host", "half", "number", "none");

  /** More than a piece of a file, and not a multiple of one. */
  private static final long LARGE = (9L << 20) / 4 + 3;

  private static final int ROUNDS = 40;

  @TempDir Path folder;

  /** Elements on the device, of which each rank holds an equal part. */
  private record Part(Tensor elements, int rank) implements ShardedState {
    @Override
    public List<StatePart> parts() {
      long count = elements.numel();
      return List.of(new StatePart("sum", new long[] {RANKS * count}, rank * count, elements));
    }

    @Override
    public Map<String, Long> counters() {
      return Map.of();
    }

    @Override
    public void restored(Map<String, Long> counters) {}
  }

  private static CudaRanks ranks() {
    return new CudaRanks(Cuda.get())
        .onOneDevice()
        .on(new GlooProvider(List.of(new GlooCudaProvider(Cuda::get))));
  }

  private static Tensor onHost(DType dtype, int seed, long... shape) {
    Tensor tensor = Tensor.allocate(dtype, shape);
    for (long i = 0; i < tensor.numel(); i++) {
      tensor.setDouble(i, (double) ((i * 31 + seed) % 97));
    }
    return tensor;
  }

  /** Returns tensors on the host with the content that those on the device get. */
  private static List<Tensor> expected(int seed) {
    return List.of(
        onHost(DType.FLOAT32, seed, LARGE),
        onHost(DType.FLOAT64, seed, 3, 5),
        onHost(DType.BFLOAT16, seed, 7, 11, 13),
        onHost(DType.INT64, seed),
        onHost(DType.FLOAT32, seed, 0, 3));
  }

  private static List<Tensor> tensors(CudaDevice device, int seed) {
    List<Tensor> tensors = new ArrayList<>();
    for (Tensor host : expected(seed)) {
      tensors.add(host.dtype() == DType.FLOAT64 ? host : device.tensors().copyOf(host));
    }
    return tensors;
  }

  private static void assertSame(CudaDevice device, List<Tensor> actual, List<Tensor> expected) {
    for (int i = 0; i < actual.size(); i++) {
      Tensor tensor = actual.get(i);
      Tensor host = tensor.device().isCpu() ? tensor : device.tensors().toHost(tensor);
      assertThat(host.segment().mismatch(expected.get(i).segment())).as(NAMES.get(i)).isEqualTo(-1);
    }
  }

  @Test
  void tensorsComeBackToTheDevice() throws Exception {
    ranks()
        .run(
            RANKS,
            (group, device) -> {
              Tensor sum = device.tensors().copyOf(onHost(DType.FLOAT32, group.rank(), LARGE));
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                Contents contents =
                    Contents.of()
                        .copies("model", NAMES, tensors(device, 5))
                        .parts("state", new Part(sum, group.rank()));
                saved.save(1, contents).await();
              }
            });
    ranks()
        .run(
            RANKS,
            (group, device) -> {
              List<Tensor> model = tensors(device, 6);
              Tensor sum = device.tensors().copyOf(onHost(DType.FLOAT32, 50, LARGE));
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                Contents contents =
                    Contents.of()
                        .copies("model", NAMES, model)
                        .parts("state", new Part(sum, group.rank()));
                assertThat(saved.loadLatest(contents)).hasValue(1);
              }
              assertSame(device, model, expected(5));
              assertSame(device, List.of(sum), List.of(onHost(DType.FLOAT32, group.rank(), LARGE)));
            });
  }

  @Test
  void aSaveComesAfterWhatIsInTheStreamAndBeforeWhatFollows() throws Exception {
    ranks()
        .run(
            RANKS,
            (group, device) -> {
              Tensor ones = Tensor.allocate(DType.FLOAT64, LARGE).fill(1);
              Tensor tensor = device.tensors().copyOf(ones);
              Contents contents = Contents.of().copies("model", List.of("t"), List.of(tensor));
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                for (int i = 0; i < ROUNDS; i++) {
                  group.allReduce(tensor, ReduceOp.SUM);
                }
                Saving saving = saved.save(1, contents);
                group.allReduce(tensor, ReduceOp.SUM);
                saving.await();
                assertThat(device.tensors().toHost(tensor).toDoubleArray())
                    .containsOnly((double) (1L << (ROUNDS + 1)));
                assertThat(saved.loadLatest(contents)).hasValue(1);
              }
              assertThat(device.tensors().toHost(tensor).toDoubleArray())
                  .containsOnly((double) (1L << ROUNDS));
            });
  }

  @Test
  void aSaveBesideReadsWhatWasInTheStreamWhileOthersReadToo() throws Exception {
    ranks()
        .run(
            RANKS,
            (group, device) -> {
              Tensor tensor =
                  device.tensors().copyOf(Tensor.allocate(DType.FLOAT64, LARGE).fill(1));
              Tensor other = device.tensors().allocate(DType.FLOAT64, LARGE);
              Contents contents = Contents.of().copies("model", List.of("t"), List.of(tensor));
              try (Checkpoints saved = Checkpoints.in(group, folder)) {
                for (long step = 1; step <= 3; step++) {
                  for (int i = 0; i < ROUNDS / 4; i++) {
                    group.allReduce(tensor, ReduceOp.SUM);
                  }
                  Saving saving = saved.saveBeside(step, contents);
                  new CudaDeviceTensors(Cuda::get).copy(other, tensor);
                  saving.awaitCopied();
                  group.allReduce(tensor, ReduceOp.SUM);
                  saving.await();
                  double expected = (double) (1L << (ROUNDS / 4));
                  assertThat(device.tensors().toHost(other).toDoubleArray()).containsOnly(expected);
                  assertThat(saved.loadLatest(contents)).hasValue(step);
                  assertThat(device.tensors().toHost(tensor).toDoubleArray())
                      .containsOnly(expected);
                  device
                      .tensors()
                      .copyFromHost(tensor, Tensor.allocate(DType.FLOAT64, LARGE).fill(1));
                }
              }
            });
  }
}
