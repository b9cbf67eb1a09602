package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

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
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.ReducerOptions;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * A random program that trains a DJL model, drawn from a seed: which parameters are frozen, shared,
 * or unused in a pass, their types, how many backwards accumulate before a reduction, when all
 * ranks freeze and unfreeze, when gradients are cleared, and for some programs what goes wrong in
 * which step. The gradient of each use of a parameter is a number of seed, rank, step, pass and
 * parameter, so every rank knows the means by c10d's rules.
 */
final class TrainerProgram implements AutoCloseable {
  /** What goes wrong, if anything. */
  private enum Fault {
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

  private static final int STEPS = 5;
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

  private final long seed;
  private final ProcessGroup group;
  private final Random random;
  private final int count;
  private final boolean unused;
  private final Fault fault;
  private final int faultStep;
  private final int faultRank;
  private final int faultParameter;
  private final Model model = Model.newInstance("program");
  private final List<Parameter> parameters = new ArrayList<>();
  private final boolean[] frozen;
  private final boolean mixed;
  private final DataParallelListener parallel;
  private final Trainer trainer;

  /** For each rank and parameter, its gradient. */
  private final double[][] gradients;

  TrainerProgram(long seed, ProcessGroup group) {
    this.seed = seed;
    this.group = group;
    random = at(-1);
    count = 2 + random.nextInt(4);
    unused = random.nextBoolean();
    mixed = random.nextBoolean();
    Fault[] faults = Fault.values();
    fault = random.nextInt(3) == 0 ? faults[random.nextInt(faults.length)] : Fault.NONE;
    faultStep = 1 + random.nextInt(STEPS - 1);
    faultRank = random.nextInt(group.size());
    faultParameter = fault == Fault.UNFROZEN ? count - 1 : random.nextInt(2);
    frozen = new boolean[count];
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < count; i++) {
      frozen[i] = (i > 1 && random.nextInt(3) == 0) || (fault == Fault.UNFROZEN && i == count - 1);
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
    gradients = new double[group.size()][count];
    ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(64, 1024).withDigest(1);
    parallel = new DataParallelListener(group, unused ? options.withUnusedParameters() : options);
    trainer =
        model.newTrainer(
            new DefaultTrainingConfig(Loss.l2Loss())
                .optOptimizer(Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.125f)).build())
                .addTrainingListeners(parallel));
  }

  @Override
  public String toString() {
    return ("seed %d, %d ranks, %d parameters, frozen at start() or now %s, unused %s, mixed %s,"
            + " %s of p%d in step %d on rank %d")
        .formatted(
            seed,
            group.size(),
            count,
            Arrays.toString(frozen),
            unused,
            mixed,
            fault,
            faultParameter,
            faultStep,
            faultRank);
  }

  private Random at(long... place) {
    long mixed = seed;
    for (long each : place) {
      mixed = (mixed + each + 2) * 0x9E37_79B9_7F4A_7C15L;
      mixed ^= mixed >>> 29;
    }
    return new Random(mixed);
  }

  /** Runs the program on this rank. */
  void run() {
    trainer.initialize(new Shape(1));
    parallel.start(trainer);
    boolean[] trained = new boolean[count];
    for (int i = 0; i < count; i++) {
      trained[i] = !frozen[i];
    }
    for (int step = 0; step < STEPS; step++) {
      if (fault != Fault.NONE && step == faultStep) {
        fail(step);
        return;
      }
      boolean early = random.nextBoolean();
      if (early) {
        freezeSome(trained);
      }
      int passes = random.nextInt(3) == 0 ? 3 : 1;
      for (int pass = 0; pass < passes; pass++) {
        backward(step, pass);
      }
      if (!early) {
        freezeSome(trained);
      }
      parallel.reduceGradients();
      reduce();
      require(step);
      if (random.nextInt(3) > 0) {
        descend();
      }
    }
  }

  /** Freezes or unfreezes parameters on all ranks, where the options allow unused ones. */
  private void freezeSome(boolean[] trained) {
    for (int i = 2; unused && i < count; i++) {
      if (trained[i] && random.nextInt(3) == 0) {
        frozen[i] = !frozen[i];
        parameters.get(i).freeze(frozen[i]);
      }
    }
  }

  private boolean uses(int rank, int step, int pass, int parameter) {
    return !frozen[parameter]
        && (parameter == 0 || at(1, rank, step, pass, parameter).nextInt(3) > 0);
  }

  private double factor(int rank, int step, int pass, int parameter) {
    int drawn = at(2, rank, step, pass, parameter).nextInt(9);
    return 6.0 * (parameter == 0 ? 20 + drawn : drawn - 4);
  }

  private void backward(int step, int pass) {
    double[] factors = new double[count];
    for (int rank = 0; rank < group.size(); rank++) {
      for (int i = 0; i < count; i++) {
        double factor = uses(rank, step, pass, i) ? factor(rank, step, pass, i) : 0;
        gradients[rank][i] += factor;
        if (rank == group.rank()) {
          factors[i] = factor;
        }
      }
    }
    backward(factors);
  }

  /** Adds each factor to the gradient of its parameter; a factor of 0 leaves its parameter out. */
  private void backward(double... factors) {
    try (NDScope scope = new NDScope();
        NDManager manager = model.getNDManager().newSubManager();
        GradientCollector collector = trainer.newGradientCollector()) {
      scope.suppressNotUsedWarning();
      NDArray loss = manager.create(0.0);
      for (int i = 0; i < factors.length; i++) {
        if (factors[i] != 0) {
          // An array, as DJL keeps no number for backward; as DJL's conversions have no gradient,
          // mixed types are promoted.
          NDArray factor = manager.create(factors[i]);
          loss = loss.add(parameters.get(i).getArray().mul(factor).sum());
        }
      }
      collector.backward(loss);
    }
  }

  /** Applies c10d's rules: the mean counts what each rank has, and zeros where it has nothing. */
  private void reduce() {
    for (int i = 0; i < count; i++) {
      double sum = 0;
      for (double[] own : gradients) {
        sum += own[i];
      }
      for (double[] own : gradients) {
        own[i] = sum / group.size();
      }
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
        for (double[] own : gradients) {
          own[i] = 0;
        }
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

  private void require(int step) {
    for (int i = 0; i < count; i++) {
      if (frozen[i]) {
        continue;
      }
      double expected = gradients[group.rank()][i];
      try (NDArray gradient = parameters.get(i).getArray().getGradient();
          NDArray wide = gradient.toType(DataType.FLOAT64, true)) {
        for (double value : wide.toDoubleArray()) {
          if (!(Math.abs(value - expected) <= 0.002 * Math.max(1, Math.abs(expected)))) {
            throw new AssertionError(
                "the gradient of p%d in step %d is %s, not %s: %s"
                    .formatted(i, step, value, expected, this));
          }
        }
      }
    }
  }

  /**
   * Takes a step in which something goes wrong: all ranks name the parameter, or a rank that left.
   */
  private void fail(int step) {
    boolean here = group.rank() == faultRank;
    if (here) {
      failHere();
    }
    if (here && fault == Fault.THROWN) {
      return;
    }
    double[] factors = {6000, 6000}; // more than earlier passes can take away
    if (here && fault != Fault.DRIFTED && fault != Fault.UNFROZEN) {
      factors[faultParameter] = 0;
    }
    backward(factors);
    if (fault == Fault.FROZEN && unused) {
      // The frozen parameter counts as unused, but it alone keeps its value.
      parallel.reduceGradients();
      descend();
      backward(factors);
    }
    assertThat(catchThrowable(parallel::reduceGradients))
        .as("failure in step %d of %s", step, this)
        .isInstanceOf(GradientException.class)
        .hasMessageContaining(
            fault == Fault.THROWN
                ? "rank " + faultRank + " closed its group"
                : "p" + faultParameter + "'");
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
