package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.PowerSgd;
import dev.tutti.gradients.hook.PowerSgdOptions;
import dev.tutti.state.ShardedState;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that training with approximated gradients continues from a checkpoint. */
class PowerSgdResumeTest {
  private static final List<String> NAMES = List.of("a.w", "a.b", "b.w");
  private static final long[][] SHAPES = {{23, 19}, {19}, {4, 31, 3}};
  private static final int RANKS = 2;
  private static final int PLAIN = 3;
  private static final int SAVED = 6;
  private static final int ALL = 12;

  @TempDir Path folder;

  /** A model whose gradients depend on the parameters, the rank and the step. */
  private static final class Trainer implements AutoCloseable {
    private final ProcessGroup group;
    private final List<Tensor> parameters = new ArrayList<>();
    private final PowerSgd hook;
    private final ShardedState state;
    private final GradientReducer reducer;

    Trainer(ProcessGroup group, boolean warm) {
      this.group = group;
      for (long[] shape : SHAPES) {
        parameters.add(Tensor.allocate(DType.FLOAT32, shape).fill(0.5));
      }
      PowerSgdOptions options = PowerSgdOptions.DEFAULT.withRank(2).withPlainSteps(PLAIN);
      hook = new PowerSgd(warm ? options : options.withoutWarmStart());
      state = hook.state(group, NAMES, parameters);
      // Each parameter has a bucket, and these are formed anew after the first step of a job.
      reducer =
          new GradientReducer(
              group, parameters, ReducerOptions.DEFAULT.withBucketBytes(1, 1).withHook(hook));
    }

    Contents model() {
      return Contents.of().copies("model", NAMES, parameters);
    }

    Contents all() {
      return model().parts("powersgd", state);
    }

    /** Takes steps, the last of them with a given number. */
    Trainer train(int first, int last) {
      for (int step = first; step <= last; step++) {
        for (int i = 0; i < SHAPES.length; i++) {
          Random random = new Random(1000L * step + 10L * group.rank() + i);
          Tensor gradient = reducer.gradient(i);
          for (long k = 0; k < gradient.numel(); k++) {
            gradient.setDouble(k, parameters.get(i).getDouble(k) * random.nextGaussian());
          }
          reducer.ready(i);
        }
        reducer.await();
        for (int i = 0; i < SHAPES.length; i++) {
          Tensor parameter = parameters.get(i);
          for (long k = 0; k < parameter.numel(); k++) {
            parameter.setDouble(k, parameter.getDouble(k) - 0.1 * reducer.gradient(i).getDouble(k));
          }
        }
      }
      return this;
    }

    List<float[]> elements() {
      return parameters.stream().map(Tensor::toFloatArray).toList();
    }

    @Override
    public void close() {
      reducer.close();
    }
  }

  private void save(boolean warm) {
    ThreadedWorld.run(
        RANKS,
        group -> {
          try (Trainer trainer = new Trainer(group, warm);
              Checkpoints saved = Checkpoints.in(group, folder)) {
            trainer.train(1, SAVED);
            saved.save(SAVED, trainer.all()).await();
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theCurveContinuesBitForBit(boolean warm) {
    save(warm);
    ThreadedWorld.run(
        RANKS,
        group -> {
          List<float[]> expected;
          try (Trainer undisturbed = new Trainer(group, warm)) {
            expected = undisturbed.train(1, ALL).elements();
          }
          try (Trainer resumed = new Trainer(group, warm);
              Checkpoints saved = Checkpoints.in(group, folder)) {
            assertThat(saved.loadLatest(resumed.all())).hasValue(SAVED);
            List<float[]> actual = resumed.train(SAVED + 1, ALL).elements();
            assertThat(resumed.state.counters()).containsEntry("step", (long) ALL);
            for (int i = 0; i < SHAPES.length; i++) {
              assertThat(actual.get(i)).containsExactly(expected.get(i));
            }
          }
          try (Trainer without = new Trainer(group, warm);
              Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.loadLatest(without.model());
            assertThat(without.train(SAVED + 1, ALL).elements().getFirst())
                .isNotEqualTo(expected.getFirst());
          }
        });
  }

  @Test
  void errorsOfOtherRanksAreRefusedByName() {
    save(true);
    ThreadedWorld.run(
        RANKS + 1,
        group -> {
          try (Trainer trainer = new Trainer(group, true);
              Checkpoints saved = Checkpoints.in(group, folder)) {
            assertThatThrownBy(() -> saved.loadLatest(trainer.all()))
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining(
                    "the checkpoint has 'error/a.w' as float32[2, 23, 19], not as float32[3, 23,"
                        + " 19], for section 'powersgd'");
            assertThat(trainer.elements().getFirst()).containsOnly(0.5f);
            assertThat(saved.loadLatest(trainer.model())).hasValue(SAVED);
            trainer.train(1, 1);
          }
        });
  }
}
