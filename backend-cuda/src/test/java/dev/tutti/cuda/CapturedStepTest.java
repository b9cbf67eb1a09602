package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.ReducerOptions.Divisor;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.spi.DeviceSession.Recording;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that a whole step is captured into a graph and replayed, or refused. */
class CapturedStepTest extends ReducersOnDevices {
  private static void set(CudaDevice device, Tensor tensor, float value) {
    Tensor host = Tensor.allocate(DType.FLOAT32, 5);
    host.fill(value);
    device.tensors().copyFromHost(tensor, host);
  }

  /** The work of a step: gradients are copies of inputs, and parameters become their means. */
  private void step(GradientReducer reducer, List<Tensor> inputs, List<Tensor> parameters) {
    reducer.zeroGradients();
    for (int i = 0; i < 2; i++) {
      buckets.copy(reducer.gradient(i), inputs.get(i));
      reducer.ready(i);
    }
    reducer.await();
    for (int i = 0; i < 2; i++) {
      buckets.copy(parameters.get(i), reducer.gradient(i));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void replaysReduceWhatTheInputsHoldThen(boolean compresses) throws Exception {
    machine.fake.races().findAcrossThreads();
    ReducerOptions options = compresses ? options().withHook(Compression.bfloat16()) : options();
    ranks()
        .run(
            2,
            (group, device) -> {
              try (CudaSession session = new CudaSession(device)) {
                List<Tensor> parameters = List.of(filled(device, 5, 0), filled(device, 5, 0));
                List<Tensor> inputs = List.of(filled(device, 5, 0), filled(device, 5, 0));
                GradientReducer reducer = new GradientReducer(group, parameters, options);
                for (int step = 0; step < 2; step++) {
                  step(reducer, inputs, parameters);
                }
                List<Float> means = new ArrayList<>();
                try (Recording graph = session.record(() -> step(reducer, inputs, parameters))) {
                  for (int replay = 0; replay < 3; replay++) {
                    set(device, inputs.get(0), 2 * replay + 2 * group.rank());
                    set(device, inputs.get(1), 10 * group.rank());
                    graph.replay();
                    means.add(device.tensors().toHost(parameters.get(0)).getFloat(4));
                    assertThat(device.tensors().toHost(parameters.get(1)).toFloatArray())
                        .containsOnly(5);
                  }
                  group.store().barrier("replayed", 2, Until.LONG);
                }
                assertThat(means).containsExactly(1f, 3f, 5f);
                set(device, inputs.get(0), 40 + 2 * group.rank());
                step(reducer, inputs, parameters);
                assertThat(device.tensors().toHost(parameters.get(0)).toFloatArray())
                    .containsOnly(41);
                reducer.close();
              }
            });
    assertThat(machine.fake.races().found()).isEmpty();
  }

  private void refuses(ReducerOptions options, int eagerSteps, boolean onHost, String reason)
      throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor second = onHost ? Tensor.allocate(DType.FLOAT32, 5) : filled(device, 5, 0);
              List<Tensor> parameters = List.of(filled(device, 5, 0), second);
              try (CudaSession session = new CudaSession(device);
                  GradientReducer reducer = new GradientReducer(group, parameters, options)) {
                for (int step = 0; step < eagerSteps; step++) {
                  plainStep(reducer);
                }
                assertThatThrownBy(() -> session.record(() -> plainStep(reducer)).close())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("cannot be captured into a graph")
                    .hasMessageContaining(reason);
                assertThatThrownBy(() -> session.record(reducer::await).close())
                    .hasMessageContaining(reason);
                plainStep(reducer);
                assertThat(group.failure()).isEmpty();
              }
            });
  }

  private static void plainStep(GradientReducer reducer) {
    reducer.ready(0);
    reducer.ready(1);
    reducer.await();
  }

  @Test
  void stepsThatNeedTheHostAreRefusedAndTheReducerStaysUsable() throws Exception {
    refuses(options(), 1, false, "first take 2 steps");
    refuses(options(), 3, true, "some parameters are on the host");
    refuses(options().withUnusedParameters(), 3, false, "withUnusedParameters");
    refuses(options().withUnevenInputs(Divisor.GROUP_SIZE), 3, false, "withUnevenInputs");
  }
}
