package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that gradients on fake devices are reduced alongside others on the host. */
class GradientReducerDevicesTest {
  private final FakeMachine machine = new FakeMachine(2);

  @AfterEach
  void close() {
    machine.close();
  }

  /** Allocates on a device, and clears and copies via the host. */
  private record CudaBuckets(CudaDevice cuda) implements BucketAllocator {
    @Override
    public Tensor allocate(Arena arena, Device device, DType dtype, long numel) {
      return device.isCpu()
          ? BucketAllocator.HOST.allocate(arena, device, dtype, numel)
          : cuda.tensors().allocate(arena, dtype, numel);
    }

    @Override
    public void zero(Tensor tensor) {
      if (tensor.device().isCpu()) {
        BucketAllocator.HOST.zero(tensor);
      } else {
        cuda.tensors().copyFromHost(tensor, Tensor.allocate(tensor.dtype(), tensor.shape()));
      }
    }

    @Override
    public void copy(Tensor target, Tensor source) {
      if (target.device().isCpu()) {
        BucketAllocator.HOST.copy(target, source);
      } else {
        cuda.tensors().copyFromHost(target, cuda.tensors().toHost(source));
      }
    }
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda))));
  }

  private static Tensor filled(Tensor like, float value) {
    float[] values = new float[(int) like.numel()];
    Arrays.fill(values, value);
    return Tensor.of(like.dtype(), values).view(like.shape());
  }

  private static float[] read(CudaDevice device, Tensor tensor) {
    return (tensor.device().isCpu() ? tensor : device.tensors().toHost(tensor)).toFloatArray();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void gradientsOnDevicesAndOnTheHostBecomeMeans(boolean copies) throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              List<Tensor> parameters =
                  List.of(
                      device.tensors().allocate(DType.FLOAT32, 300, 4),
                      Tensor.allocate(DType.FLOAT32, 50),
                      device.tensors().allocate(DType.FLOAT16, 70),
                      device.tensors().allocate(DType.FLOAT32, 9));
              for (int i = 0; i < 4; i++) {
                write(device, parameters.get(i), 10 * group.rank() + i);
              }
              List<Tensor> own =
                  List.of(
                      device.tensors().allocate(DType.FLOAT32, 300, 4),
                      Tensor.allocate(DType.FLOAT32, 50),
                      device.tensors().allocate(DType.FLOAT16, 70),
                      device.tensors().allocate(DType.FLOAT32, 9));
              ReducerOptions options =
                  ReducerOptions.DEFAULT
                      .withAllocator(new CudaBuckets(device))
                      .withBucketBytes(16, 64);
              try (GradientReducer reducer =
                  new GradientReducer(
                      group, parameters, copies ? options.withGradients(own) : options)) {
                for (int i = 0; i < 4; i++) {
                  assertThat(read(device, parameters.get(i))).containsOnly(i);
                }
                for (int step = 0; step < 4; step++) {
                  for (int i : new int[] {1, 3, 0, 2}) {
                    Tensor gradient = copies ? own.get(i) : reducer.gradient(i);
                    write(device, gradient, 8 * group.rank() + i + step);
                    reducer.ready(i);
                  }
                  reducer.await();
                  for (int i = 0; i < 4; i++) {
                    Tensor gradient = copies ? own.get(i) : reducer.gradient(i);
                    assertThat(gradient.device()).isEqualTo(parameters.get(i).device());
                    assertThat(read(device, gradient)).containsOnly(4 + i + step);
                  }
                }
                assertThat(reducer.buckets().stream().map(GradientBucket::parameters))
                    .containsExactly(List.of(1), List.of(3), List.of(0), List.of(2));
              }
            });
  }

  private static void write(CudaDevice device, Tensor tensor, float value) {
    if (tensor.device().isCpu()) {
      tensor.copyFrom(filled(tensor, value));
    } else {
      device.tensors().copyFromHost(tensor, filled(tensor, value));
    }
  }

  @Test
  void withoutAnAllocatorParametersOnDevicesAreRefused() throws Exception {
    ranks()
        .run(
            1,
            (group, device) -> {
              Tensor parameter = device.tensors().copyOf(Tensor.of(1f));
              assertThatThrownBy(() -> new GradientReducer(group, List.of(parameter)))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("ReducerOptions.withAllocator");
            });
  }
}
