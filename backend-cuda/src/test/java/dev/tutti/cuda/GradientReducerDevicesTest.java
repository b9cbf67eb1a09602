package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.gradients.hook.DelayedHook;
import dev.tutti.gradients.hook.PowerSgd;
import dev.tutti.gradients.hook.PowerSgdOptions;
import dev.tutti.gradients.hook.StripedAllReduce;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
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

  private BucketAllocator allocator() {
    return DeviceBuckets.of(machine);
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
                  ReducerOptions.DEFAULT.withAllocator(allocator()).withBucketBytes(16, 64);
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

  /** {@code -Dtutti.gradientModels=N} trains another number of them. */
  @Test
  void randomModelsAreTrained() throws Exception {
    DeviceModels models = new DeviceModels(ranks(), options -> options.withAllocator(allocator()));
    for (int i = 0; i < Integer.getInteger("tutti.gradientModels", 6); i++) {
      models.train(400_000 + i, 3000);
    }
  }

  @Test
  void hooksOfTheHostAreRefusedBeforeTheRanksMeet() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor matrix = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, 60, 50));
              Tensor vector = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, 60));
              ReducerOptions options = ReducerOptions.DEFAULT.withAllocator(allocator());
              GradientHook approximates = new PowerSgd(PowerSgdOptions.DEFAULT);
              try (StripedAllReduce stripes = StripedAllReduce.over(group, 2)) {
                for (GradientHook hook :
                    List.of(approximates, stripes, new DelayedHook(approximates, Duration.ZERO))) {
                  ReducerOptions hooked = options.withHook(hook);
                  assertThatThrownBy(
                          () -> new GradientReducer(group, List.of(vector, matrix), hooked))
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessageContaining("on the host only, but parameter");
                }
              }
              try (GradientReducer reducer =
                  new GradientReducer(group, List.of(vector), options.withHook(approximates))) {
                write(device, reducer.gradient(0), 2 * group.rank());
                reducer.ready(0);
                reducer.await();
                assertThat(read(device, reducer.gradient(0))).containsOnly(1);
              }
            });
  }

  @Test
  void gradientsOnDevicesAreCompressedThere() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor parameter = device.tensors().allocate(DType.FLOAT32, 1000);
              Tensor other = device.tensors().allocate(DType.FLOAT64, 3);
              write(device, parameter, 0);
              write(device, other, 0);
              AtomicInteger halves = new AtomicInteger();
              Compression compression = Compression.float16();
              GradientHook hook =
                  (bucket, of) -> {
                    compression.reduce(bucket, of);
                    halves.incrementAndGet();
                  };
              try (GradientReducer reducer =
                  new GradientReducer(
                      group,
                      List.of(parameter, other),
                      ReducerOptions.DEFAULT.withAllocator(allocator()).withHook(hook))) {
                for (int step = 0; step < 3; step++) {
                  // Rounded to 1 and 1 + 2^-10, whose mean is halfway, and so rounded to even.
                  write(device, reducer.gradient(0), 1 + (1 + 2 * group.rank()) * 0x1p-12f);
                  write(device, reducer.gradient(1), 2 + 4 * group.rank());
                  reducer.ready(0);
                  reducer.ready(1);
                  reducer.await();
                  assertThat(read(device, reducer.gradient(0))).containsOnly(1);
                  assertThat(read(device, reducer.gradient(1))).containsOnly(4);
                }
              }
              assertThat(halves.get()).isEqualTo(6);
            });
  }
}
