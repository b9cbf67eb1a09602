package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.TrainingResult;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.testing.World;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;

/** Each rank is a process, as an engine collects gradients in one place per process. */
@World(backends = "gloo", processes = true, timeoutSeconds = 220)
class DataParallelListenerTest {
  private static final Shape INPUT = new Shape(4, 6);

  /** Unpacks libtorch before any world's deadline starts. */
  @BeforeAll
  static void load() {
    Engine.getInstance();
  }

  /** A model, its trainer and the listener of one rank. */
  private static final class Training implements AutoCloseable {
    final Model model = Model.newInstance("test");
    final DataParallelListener parallel;
    final Trainer trainer;

    Training(ProcessGroup group, int units) {
      this(
          group,
          new SequentialBlock()
              .add(Linear.builder().setUnits(units).build())
              .add(BatchNorm.builder().build())
              .add(Linear.builder().setUnits(2).build()));
    }

    Training(ProcessGroup group, Block block) {
      this(group, block, ReducerOptions.DEFAULT);
    }

    Training(ProcessGroup group, Block block, ReducerOptions options) {
      Engine.getInstance().setRandomSeed(10 + group.rank());
      parallel = new DataParallelListener(group, options);
      model.setBlock(block);
      trainer = newTrainer(parallel);
    }

    Trainer newTrainer(DataParallelListener listener) {
      return model.newTrainer(
          new DefaultTrainingConfig(Loss.l2Loss())
              .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build())
              .addTrainingListeners(listener));
    }

    Training started() {
      trainer.initialize(INPUT);
      parallel.start(trainer);
      return this;
    }

    List<NDArray> arrays(boolean trained) {
      return model.getBlock().getParameters().values().stream()
          .filter(each -> each.requiresGradient() == trained)
          .map(Parameter::getArray)
          .toList();
    }

    List<float[]> gradients() {
      List<float[]> gradients = new ArrayList<>();
      for (NDArray parameter : arrays(true)) {
        try (NDArray gradient = parameter.getGradient()) {
          gradients.add(gradient.toFloatArray());
        }
      }
      return gradients;
    }

    void backward(float input) {
      backward(trainer, input);
    }

    static void backward(Trainer trainer, float input) {
      try (NDManager manager = trainer.getManager().newSubManager();
          GradientCollector collector = trainer.newGradientCollector()) {
        NDArray data = manager.arange(24f).reshape(INPUT).mul(0.1f).add(input);
        NDArray output =
            trainer
                .forward(new ai.djl.ndarray.NDList(data))
                .singletonOrThrow()
                .mul(manager.create(input));
        collector.backward(output.square().mean());
      }
    }

    @Override
    public void close() {
      trainer.close();
      model.close();
    }
  }

  private static void requireMeans(ProcessGroup group, List<float[]> local, List<float[]> reduced) {
    for (int i = 0; i < local.size(); i++) {
      Tensor mean = Tensor.of(local.get(i));
      group.allReduce(mean, ReduceOp.AVG);
      for (int k = 0; k < local.get(i).length; k++) {
        assertThat(reduced.get(i)[k])
            .as("gradient %d of parameter %d", k, i)
            .isCloseTo(mean.getFloat(k), within(1e-5f + Math.abs(mean.getFloat(k)) * 1e-5f));
      }
    }
  }

  private static void requireAlike(ProcessGroup group, List<NDArray> arrays) {
    for (NDArray array : arrays) {
      float[] values = array.toFloatArray();
      Tensor first = Tensor.of(values);
      group.broadcast(first, 0);
      for (int k = 0; k < values.length; k++) {
        assertThat(values[k]).isEqualTo(first.getFloat(k));
      }
    }
  }

  @World
  void allRanksBeginWithTheParametersOfRankZero(ProcessGroup group) {
    try (Training training = new Training(group, 5)) {
      training.trainer.initialize(INPUT);
      assertThat(training.arrays(false)).hasSize(2);
      training.arrays(false).forEach(buffer -> buffer.addi(group.rank() + 1f));
      training.parallel.start(training.trainer);
      requireAlike(group, training.arrays(true));
      requireAlike(group, training.arrays(false));
      assertThat(training.arrays(false).getFirst().toFloatArray()).containsOnly(1f);
    }
  }

  @World(sizes = {2, 3})
  void gradientsBecomeMeansWhereTheEngineHasThem(ProcessGroup group) {
    try (Training training = new Training(group, 5).started()) {
      for (int step = 0; step < 3; step++) {
        training.backward(1 + step + group.rank());
        List<float[]> local = training.gradients();
        training.parallel.reduceGradients();
        requireMeans(group, local, training.gradients());
        requireShared(training);
        training.trainer.step();
        requireAlike(group, training.arrays(true));
      }
      assertThat(training.parallel.reducer().statistics().step()).isPositive();
    }
  }

  private static void requireShared(Training training) {
    List<NDArray> parameters = training.arrays(true);
    for (int i = 0; i < parameters.size(); i++) {
      try (NDArray gradient = parameters.get(i).getGradient()) {
        assertThat(ArrayMemory.isShared(gradient, training.parallel.reducer().gradient(i)))
            .as("gradient %d is in a bucket", i)
            .isTrue();
      }
    }
  }

  @World
  void batchesBeforeAStepAddUp(ProcessGroup group) {
    try (Training training = new Training(group, 5).started()) {
      training.backward(1 + group.rank());
      List<float[]> first = training.gradients();
      training.trainer.notifyListeners(each -> each.onTrainingBatch(training.trainer, null));
      List<float[]> mean = training.gradients();
      training.backward(3 - group.rank());
      List<float[]> sum = training.gradients();
      training.parallel.reduceGradients();
      List<float[]> local = new ArrayList<>();
      for (int i = 0; i < first.size(); i++) {
        float[] both = first.get(i).clone();
        for (int k = 0; k < both.length; k++) {
          both[k] += sum.get(i)[k] - mean.get(i)[k];
        }
        local.add(both);
      }
      requireMeans(group, local, training.gradients());
    }
  }

  @World
  void aGradientThatTheProgramReplacesIsCopied(ProcessGroup group) {
    try (Training training = new Training(group, 5).started()) {
      training.backward(1 + group.rank());
      NDArray parameter = training.arrays(true).getFirst();
      ByteBuffer own =
          ByteBuffer.allocateDirect((int) parameter.size() * Float.BYTES)
              .order(ByteOrder.nativeOrder());
      for (int k = 0; k < parameter.size(); k++) {
        own.putFloat(k * Float.BYTES, k + group.rank());
      }
      try (NDArray gradient = parameter.getGradient()) {
        gradient.set(own);
      }
      List<float[]> local = training.gradients();
      assertThat(local.getFirst()[1]).isEqualTo(1f + group.rank());
      training.parallel.reduceGradients();
      requireMeans(group, local, training.gradients());
      requireShared(training);
    }
  }

  @World
  void aBlockThatIsUsedTwiceIsReducedOnce(ProcessGroup group) {
    Block shared = Linear.builder().setUnits(6).build();
    try (Training training = new Training(group, new SequentialBlock().add(shared).add(shared))) {
      training.started();
      assertThat(training.arrays(true)).hasSize(4);
      for (int step = 0; step < 3; step++) {
        training.backward(1 + step + group.rank());
        List<float[]> local = training.gradients();
        training.parallel.reduceGradients();
        requireMeans(group, local, training.gradients());
        assertThat(training.parallel.reducer().statistics().bytes()).isEqualTo((36 + 6) * 4);
        training.trainer.step();
        requireAlike(group, training.arrays(true));
      }
    }
  }

  @World
  void parametersThatAreNotContiguousAreCopied(ProcessGroup group) {
    try (Training training = new Training(group, 5)) {
      training.trainer.initialize(INPUT);
      NDArray weight = training.arrays(true).getFirst();
      NDArray transposed =
          training.model.getNDManager().create(new float[] {1, 2, 3, 4, 5, 6}, new Shape(2, 3));
      NDArray view = transposed.add(group.rank()).transpose();
      Tensor read = ArrayMemory.read(view);
      assertThat(ArrayMemory.isShared(view, read)).isFalse();
      assertThat(ArrayMemory.isShared(weight, ArrayMemory.read(weight))).isTrue();
      group.broadcast(read, 0);
      ArrayMemory.write(view, read);
      assertThat(view.toFloatArray()).containsExactly(1, 4, 2, 5, 3, 6);
    }
  }

  @World
  void gradientsStayWhenATrainerIsClosed(ProcessGroup group) {
    try (Training training = new Training(group, 5).started()) {
      training.backward(1 + group.rank());
      training.parallel.reduceGradients();
      List<float[]> reduced = training.gradients();
      training.trainer.close();
      List<float[]> after = training.gradients();
      for (int i = 0; i < reduced.size(); i++) {
        assertThat(after.get(i)).isEqualTo(reduced.get(i));
      }

      DataParallelListener next = new DataParallelListener(group);
      try (Trainer trainer = training.newTrainer(next)) {
        trainer.initialize(INPUT);
        next.start(trainer);
        Training.backward(trainer, 2 + group.rank());
        List<float[]> local = training.gradients();
        next.reduceGradients();
        requireMeans(group, local, training.gradients());
      }
    }
  }

  private static Block layer(Training training, int index) {
    return training.model.getBlock().getChildren().get(index).getValue();
  }

  private static Training layers(ProcessGroup group, ReducerOptions options) {
    Block block =
        new SequentialBlock()
            .add(Linear.builder().setUnits(5).build())
            .add(Linear.builder().setUnits(2).build());
    return new Training(group, block, options);
  }

  private static void requireFailure(Training training, String... parts) {
    training.backward(1);
    assertThatThrownBy(training.parallel::reduceGradients)
        .isInstanceOf(GradientException.class)
        .message()
        .contains(parts);
  }

  @World(sizes = {2, 3})
  void parametersThatAreUnfrozenLaterAreNamed(ProcessGroup group) {
    try (Training training = layers(group, ReducerOptions.DEFAULT)) {
      training.trainer.initialize(INPUT);
      layer(training, 0).freezeParameters(true);
      training.parallel.start(training.trainer);
      training.backward(1 + group.rank());
      training.parallel.reduceGradients();
      training.trainer.step();
      if (group.rank() == 1) {
        layer(training, 0).freezeParameters(false);
      }
      requireFailure(training, "weight' required no gradient at start()", "requires one now");
    }
  }

  @World
  void parametersThatAreFrozenLaterAreNamedOrUnused(ProcessGroup group) {
    for (boolean unused : new boolean[] {true, false}) {
      ProcessGroup own = group.split(0, group.rank()).orElseThrow();
      ReducerOptions options = ReducerOptions.DEFAULT.withDigest(1);
      try (Training training =
          layers(own, unused ? options.withUnusedParameters() : options).started()) {
        training.backward(1 + group.rank());
        training.parallel.reduceGradients();
        training.trainer.step();
        layer(training, 0).freezeParameters(true);
        if (unused) {
          for (int step = 0; step < 2; step++) {
            training.backward(2 + group.rank());
            List<float[]> local = training.gradients();
            training.parallel.reduceGradients();
            requireMeans(own, local, training.gradients());
            training.trainer.step();
          }
          requireAlike(own, training.arrays(false));
          requireAlike(own, training.arrays(true));
        } else {
          requireFailure(training, "weight'", "missing");
        }
      }
      own.close();
    }
  }

  @World
  void parametersThatDriftApartAreNamed(ProcessGroup group) {
    try (Training training = layers(group, ReducerOptions.DEFAULT.withDigest(2)).started()) {
      training.backward(1 + group.rank());
      training.parallel.reduceGradients();
      training.trainer.step();
      training.arrays(true).getLast().addi(1e-6f * group.rank());
      requireFailure(training, "rank 0 has '", "bias' of float32[2] with checksum");
    }
  }

  @World
  void gradientsThatAProgramKeepsOutliveTheListener(ProcessGroup group) {
    try (Training training = layers(group, ReducerOptions.DEFAULT.withUnusedParameters())) {
      training.started();
      training.backward(1 + group.rank());
      training.parallel.reduceGradients();
      NDArray kept = training.arrays(true).getFirst().getGradient().flatten();
      float[] reduced = kept.toFloatArray();
      layer(training, 0).freezeParameters(true);
      training.parallel.onTrainingEnd(training.trainer);
      System.gc();
      layer(training, 0).freezeParameters(false);
      assertThat(kept.toFloatArray()).isEqualTo(reduced);
      assertThat(training.gradients().getFirst()).isEqualTo(reduced);
    }
  }

  @World
  void evaluationsAreAveraged(ProcessGroup group) {
    TrainingResult result = new TrainingResult();
    result.setEvaluations(Map.of("train_loss", 1f + group.rank(), "train_Accuracy", 0.5f));
    Map<String, Float> mean = new DataParallelListener(group).mean(result);
    assertThat(mean)
        .containsExactly(
            Map.entry("train_Accuracy", 0.5f),
            Map.entry("train_loss", 1f + (group.size() - 1) / 2f));
  }

  @World
  void rankZeroSavesForAll(ProcessGroup group) throws IOException {
    try (Training training = new Training(group, 5).started()) {
      Path folder = Files.createTempDirectory("tutti-djl-");
      try {
        training.parallel.save(training.model, folder, "digits");
        try (Stream<Path> files = Files.list(folder)) {
          assertThat(files).hasSize(group.rank() == 0 ? 1 : 0);
        }
        Path file = Files.createFile(folder.resolve("file"));
        assertThatThrownBy(() -> training.parallel.save(training.model, file, "digits"))
            .isInstanceOf(IOException.class);
      } finally {
        try (Stream<Path> files = Files.list(folder)) {
          for (Path file : files.toList()) {
            Files.delete(file);
          }
        }
        Files.delete(folder);
      }
    }
  }

  @World
  void whatSavingThrowsReachesAllRanks(ProcessGroup group) throws IOException {
    Block unsaved =
        new SequentialBlock() {
          @Override
          public void saveParameters(DataOutputStream stream) {
            throw new IllegalStateException("not to be saved");
          }
        }.add(Linear.builder().setUnits(2).build());
    Path folder = Files.createTempDirectory("tutti-djl-");
    try (Training training = new Training(group, unsaved).started()) {
      assertThatThrownBy(() -> training.parallel.save(training.model, folder, "digits"))
          .isInstanceOf(group.rank() == 0 ? IllegalStateException.class : IOException.class)
          .hasMessageContaining(group.rank() == 0 ? "not to be saved" : "rank 0 could not save");
      group.barrier();
    } finally {
      try (Stream<Path> files = Files.list(folder)) {
        for (Path file : files.toList()) {
          Files.delete(file);
        }
      }
      Files.delete(folder);
    }
  }

  @World
  void aListenerOfRankZeroIsCalledThereAlone(ProcessGroup group) {
    List<Trainer> calls = new ArrayList<>();
    TrainingListener listener =
        new TrainingListenerAdapter() {
          @Override
          public void onEpoch(Trainer trainer) {
            calls.add(trainer);
          }
        };
    try (Training training = new Training(group, 5)) {
      training.parallel.onRankZero(listener).onEpoch(training.trainer);
      assertThat(calls).hasSize(group.rank() == 0 ? 1 : 0);
    }
  }

  @World
  void otherParametersAreNamedOnAllRanks(ProcessGroup group) {
    try (Training training = new Training(group, group.rank() == 1 ? 7 : 5)) {
      training.trainer.initialize(INPUT);
      assertThatThrownBy(() -> training.parallel.start(training.trainer))
          .isInstanceOf(GradientException.class)
          .hasMessageContaining("weight")
          .hasMessageContaining("rank 1");
    }
    group.barrier();
  }

  @World
  void startComesAfterInitializeAndBeforeBatches(ProcessGroup group) {
    try (Training training = new Training(group, 5)) {
      assertThatThrownBy(() -> training.parallel.start(training.trainer))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("call Trainer.initialize before start");
      assertThatThrownBy(() -> training.parallel.onTrainingBatch(training.trainer, null))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("call start(trainer) after Trainer.initialize");
      training.started();
      assertThatThrownBy(() -> training.parallel.start(training.trainer))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("this listener of rank " + group.rank() + " was already started");
    }
  }
}
