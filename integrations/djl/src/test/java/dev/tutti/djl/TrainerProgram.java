package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.MalformedModelException;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import ai.djl.util.PairList;
import dev.tutti.ProcessGroup;
import dev.tutti.gradients.TrainingProgram;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A random program that trains a DJL model: also which parameters are shared, their types, and when
 * all ranks freeze and unfreeze.
 */
final class TrainerProgram extends TrainingProgram<TrainerProgram.Fault> {
  /** What goes wrong, if anything. */
  enum Fault {
    NONE,
    UNFROZEN,
    FROZEN,
    REPLACED,
    DETACHED,
    CLOSED,
    RELEASED,
    DRIFTED,
    THROWN
  }

  private static final DataType[] TYPES = {
    DataType.FLOAT32, DataType.FLOAT32, DataType.FLOAT64, DataType.FLOAT16
  };

  /** A block of one parameter. */
  private static final class Holder extends AbstractBlock {
    Holder(Parameter parameter) {
      addParameter(parameter);
    }

    @Override
    protected NDList forwardInternal(
        ParameterStore store, NDList inputs, boolean training, PairList<String, Object> params) {
      return inputs;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
      return inputShapes;
    }
  }

  private final Model model = Model.newInstance("program");
  private final List<Parameter> parameters = new ArrayList<>();
  private final boolean[] trained = new boolean[count];
  private final boolean mixed;
  private final DataParallelListener parallel;
  private final Trainer trainer;

  TrainerProgram(long seed, ProcessGroup group) {
    super(seed, group, Fault.values(), Fault.UNFROZEN, 0);
    mixed = random.nextBoolean();
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < count; i++) {
      trained[i] = !frozen[i];
      Shape shape = new Shape(1 + random.nextInt(700));
      DataType type = TYPES[mixed ? random.nextInt(TYPES.length) : 0];
      Parameter parameter =
          Parameter.builder()
              .setName("p" + i)
              .setType(random.nextBoolean() ? Parameter.Type.WEIGHT : Parameter.Type.OTHER)
              .optArray(model.getNDManager().full(shape, group.rank(), type))
              .optRequiresGrad(!frozen[i])
              .build();
      parameters.add(parameter);
      Holder holder = new Holder(parameter);
      block.add(holder);
      if (random.nextInt(4) == 0) {
        block.add(holder);
      }
    }
    model.setBlock(block);
    parallel = new DataParallelListener(group, unused ? OPTIONS.withUnusedParameters() : OPTIONS);
    trainer =
        model.newTrainer(
            new DefaultTrainingConfig(Loss.l2Loss())
                .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.125f)).build())
                .addTrainingListeners(parallel));
    trainer.initialize(new Shape(1));
    parallel.start(trainer);
  }

  @Override
  public String toString() {
    return super.toString() + ", mixed " + mixed;
  }

  @Override
  protected void step(int step) {
    boolean early = random.nextBoolean();
    if (early) {
      freezeSome();
    }
    int passes = random.nextInt(3) == 0 ? 3 : 1;
    for (int pass = 0; pass < passes; pass++) {
      backward(pass(step, pass));
    }
    if (!early) {
      freezeSome();
    }
    reduce(step);
    if (random.nextInt(3) > 0) {
      descend();
    }
  }

  @Override
  protected void reduceGradients() {
    parallel.reduceGradients();
  }

  /** Freezes or unfreezes parameters on all ranks, where the options allow unused ones. */
  private void freezeSome() {
    for (int i = 2; unused && i < count; i++) {
      if (trained[i] && random.nextInt(3) == 0) {
        frozen[i] = !frozen[i];
        parameters.get(i).freeze(frozen[i]);
      }
    }
  }

  /** The first parameter is used in each pass, so that each has a gradient. */
  @Override
  protected double factor(Random drawn, int pass, int parameter) {
    if (parameter == 0) {
      return 6.0 * (20 + drawn.nextInt(9));
    }
    return drawn.nextInt(3) > 0 ? 6.0 * (drawn.nextInt(9) - 4) : Double.NaN;
  }

  /** Adds each factor to the gradient of its parameter; NaN leaves its parameter out. */
  private void backward(double... factors) {
    try (NDScope scope = new NDScope();
        NDManager manager = model.getNDManager().newSubManager();
        GradientCollector collector = trainer.newGradientCollector()) {
      scope.suppressNotUsedWarning();
      NDArray loss = manager.create(0.0);
      for (int i = 0; i < count; i++) {
        if (!Double.isNaN(factors[i])) {
          // An array, as DJL keeps no number for backward; as DJL's conversions have no gradient,
          // mixed types are promoted.
          NDArray factor = manager.create(factors[i]);
          loss = loss.add(parameters.get(i).getArray().mul(factor).sum());
        }
      }
      collector.backward(loss);
    }
  }

  /** Steps and clears gradients, except of frozen parameters. */
  private void descend() {
    if (!mixed) {
      trainer.step();
    }
    for (int i = 0; i < count; i++) {
      if (parameters.get(i).requiresGradient()) {
        if (mixed) {
          descend(parameters.get(i).getArray());
        }
        clear(i, 0);
      }
    }
  }

  /** Does what the trainer does, for parameters of any type. */
  private static void descend(NDArray parameter) {
    try (NDArray gradient = parameter.getGradient();
        NDArray change = gradient.mul(0.125)) {
      parameter.subi(change);
      gradient.subi(gradient);
    }
  }

  @Override
  protected double[] gradient(int parameter) {
    try (NDArray gradient = parameters.get(parameter).getArray().getGradient();
        NDArray wide = gradient.toType(DataType.FLOAT64, true)) {
      return wide.toDoubleArray();
    }
  }

  @Override
  protected String fail(boolean here, int faultRank) {
    double[] factors = factors();
    if (here) {
      failHere();
      if (fault == Fault.THROWN) {
        return "";
      }
      if (fault != Fault.DRIFTED && fault != Fault.UNFROZEN) {
        factors[faultParameter] = Double.NaN;
      }
    }
    backward(factors);
    if (fault == Fault.FROZEN && unused) {
      // The frozen parameter counts as unused, but it alone keeps its value.
      parallel.reduceGradients();
      descend();
      backward(factors);
    }
    return fault == Fault.THROWN
        ? "rank " + faultRank + " closed its group"
        : "p" + faultParameter + "'";
  }

  private void failHere() {
    Parameter parameter = parameters.get(faultParameter);
    switch (fault) {
      case UNFROZEN -> parameter.freeze(false);
      case FROZEN -> parameter.freeze(true);
      case REPLACED -> replace(parameter);
      case DETACHED -> parameter.getArray().setRequiresGradient(false);
      case CLOSED -> parameter.close();
      case RELEASED -> parameter.getArray().close();
      case DRIFTED -> parameter.getArray().addi(1);
      case THROWN -> throwInBackward(parameter);
      default -> throw new AssertionError(fault);
    }
  }

  private void replace(Parameter parameter) {
    ByteArrayOutputStream saved = new ByteArrayOutputStream();
    try {
      parameter.save(new DataOutputStream(saved));
      parameter.load(
          model.getNDManager(), new DataInputStream(new ByteArrayInputStream(saved.toByteArray())));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (MalformedModelException e) {
      throw new AssertionError(e);
    }
  }

  /** Ends this rank's training, as a program does that an exception leaves. */
  private void throwInBackward(Parameter parameter) {
    assertThatThrownBy(
            () -> {
              try (GradientCollector collector = trainer.newGradientCollector()) {
                collector.backward(parameter.getArray().stopGradient().sum());
              }
            })
        .isInstanceOf(RuntimeException.class);
    trainer.close();
    group.close();
  }

  /** Frees all; a trainer cannot be closed once a parameter was. */
  @Override
  public void close() {
    parallel.onTrainingEnd(trainer);
    model.close();
  }
}
