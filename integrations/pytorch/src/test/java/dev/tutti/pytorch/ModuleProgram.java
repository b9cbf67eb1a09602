package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.ReducerOptions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorArrayRefOptional;
import org.bytedeco.pytorch.TensorBase;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.VoidTensorHook;
import org.bytedeco.pytorch.global.torch;

/**
 * A random program that trains a module, drawn from a seed: which parameters are frozen, shared, or
 * unused in a step, their types, how many backwards accumulate with and without {@code noSync},
 * when gradients are cleared, where {@code torch.grad} looks, which backwards create a graph, and
 * for some programs what goes wrong in which step. The gradient of each use of a parameter is a
 * number of seed, rank, step, pass and parameter, so every rank knows the means by c10d's rules.
 */
final class ModuleProgram {
  /** What goes wrong, if anything. */
  private enum Fault {
    NONE,
    MISSING,
    UNFROZEN,
    MOVED,
    RETYPED,
    DRIFTED,
    THROWN,
    TWICE
  }

  private static final int STEPS = 5;
  private static final torch.ScalarType[] TYPES = {
    torch.ScalarType.Float, torch.ScalarType.Float, torch.ScalarType.Double, torch.ScalarType.Half
  };

  private final long seed;
  private final ProcessGroup group;
  private final Random random;
  private final int count;
  private final boolean unused;
  private final Fault fault;
  private final int faultStep;
  private final int faultRank;
  private final int faultParameter;
  private final Module module = new Module();
  private final List<Tensor> parameters = new ArrayList<>();
  private final boolean[] frozen;

  /** For each rank and parameter, its gradient, or NaN if it is undefined. */
  private final double[][] gradients;

  private final boolean[][] used;

  ModuleProgram(long seed, ProcessGroup group) {
    this.seed = seed;
    this.group = group;
    random = at(-1);
    count = 2 + random.nextInt(4);
    unused = random.nextBoolean();
    Fault drawn = Fault.values()[random.nextInt(Fault.values().length)];
    // Where parameters may be unused, these two are right.
    boolean isFault = !unused || (drawn != Fault.MISSING && drawn != Fault.THROWN);
    fault = random.nextInt(3) == 0 && isFault ? drawn : Fault.NONE;
    faultStep = 1 + random.nextInt(STEPS - 1);
    faultRank = random.nextInt(group.size());
    frozen = new boolean[count];
    for (int i = 0; i < count; i++) {
      frozen[i] = i > 1 && random.nextInt(3) == 0;
      long[] shape = {1 + random.nextInt(700)};
      TensorOptions type = new TensorOptions(TYPES[random.nextInt(TYPES.length)]);
      Tensor own = torch.full(shape, new Scalar((double) group.rank()), type);
      parameters.add(new Tensor(module.register_parameter("p" + i, own, !frozen[i])));
      if (random.nextInt(4) == 0) {
        module.register_parameter("p" + i + "again", parameters.get(i), !frozen[i]);
      }
    }
    if (fault == Fault.UNFROZEN) {
      frozen[count - 1] = true;
      parameters.get(count - 1).set_requires_grad(false);
    }
    faultParameter = fault == Fault.UNFROZEN ? count - 1 : random.nextInt(2);
    gradients = new double[group.size()][count];
    used = new boolean[group.size()][count];
    for (double[] each : gradients) {
      Arrays.fill(each, Double.NaN);
    }
  }

  @Override
  public String toString() {
    return "seed %d, %d ranks, %d parameters, frozen %s, unused %s, %s of p%d in step %d on rank %d"
        .formatted(
            seed,
            group.size(),
            count,
            Arrays.toString(frozen),
            unused,
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
    ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(64, 1024).withDigest(1);
    try (DataParallel parallel =
        new DataParallel(module, group, unused ? options.withUnusedParameters() : options)) {
      for (int step = 0; step < STEPS; step++) {
        if (fault != Fault.NONE && step == faultStep) {
          fail(parallel, step);
          return;
        }
        step(parallel, step);
        require(step);
      }
    }
  }

  private void step(DataParallel parallel, int step) {
    int clear = random.nextInt(3);
    int passes = random.nextInt(3) == 0 ? 3 : 1;
    look(step);
    if (clear > 0) {
      module.zero_grad(clear == 2);
      for (double[] each : gradients) {
        for (int i = 0; i < count; i++) {
          each[i] = clear == 2 || Double.isNaN(each[i]) ? Double.NaN : 0;
        }
      }
    }
    look(step);
    if (passes > 1) {
      try (Registration _ = parallel.noSync()) {
        for (int pass = 1; pass < passes; pass++) {
          backward(step, pass);
          parallel.await();
        }
      }
    }
    backward(step, 0);
    look(step);
    parallel.await();
    for (int i = 0; i < count; i++) {
      reduce(i);
    }
    descend();
  }

  /**
   * Tells whether a rank uses a parameter in a pass; without unused ones, the last pass has all.
   */
  private boolean uses(int rank, int step, int pass, int parameter) {
    return (!unused && pass == 0) || at(1, rank, step, pass, parameter).nextInt(3) > 0;
  }

  private double factor(int rank, int step, int pass, int parameter) {
    return 6.0 * (at(2, rank, step, pass, parameter).nextInt(9) - 4);
  }

  private void backward(int step, int pass) {
    for (int rank = 0; rank < group.size(); rank++) {
      for (int i = 0; i < count; i++) {
        if (!frozen[i] && uses(rank, step, pass, i)) {
          double before = gradients[rank][i];
          gradients[rank][i] = (Double.isNaN(before) ? 0 : before) + factor(rank, step, pass, i);
          used[rank][i] = true;
        }
      }
    }
    Tensor loss = loss(step, pass, -1);
    if (!loss.requires_grad()) {
      return;
    }
    boolean withGraph = at(3, group.rank(), step, pass).nextInt(4) == 0;
    loss.backward(new Tensor(), new BoolOptional(), withGraph, new TensorArrayRefOptional());
  }

  private Tensor loss(int step, int pass, int left) {
    Tensor loss = torch.zeros(new long[0], new TensorOptions(torch.ScalarType.Double));
    for (int i = 0; i < count; i++) {
      if (i != left && uses(group.rank(), step, pass, i)) {
        loss = loss.add(term(i, factor(group.rank(), step, pass, i)));
      }
    }
    return loss;
  }

  private Tensor term(int parameter, double factor) {
    return parameters.get(parameter).mul(new Scalar(factor)).to(torch.ScalarType.Double).sum();
  }

  /** Asks for some gradients without writing them, on some ranks. */
  private void look(int step) {
    Random own = at(4, group.rank(), step, random.nextInt());
    if (own.nextInt(3) > 0) {
      return;
    }
    TensorVector asked = new TensorVector();
    Tensor loss = torch.zeros(new long[0], new TensorOptions(torch.ScalarType.Double));
    for (int i = 0; i < count; i++) {
      if (!frozen[i] && (i == 0 || own.nextBoolean())) {
        asked.push_back(parameters.get(i));
        loss = loss.add(term(i, 5));
      }
    }
    torch.grad(new TensorVector(loss), asked, new TensorVector(), new BoolOptional(), false, false);
  }

  /** Applies c10d's rules: the mean counts what each rank has, and zeros where it has nothing. */
  private void reduce(int parameter) {
    boolean any = false;
    double sum = 0;
    for (int rank = 0; rank < group.size(); rank++) {
      double own = gradients[rank][parameter];
      sum += Double.isNaN(own) ? 0 : own;
      any |= used[rank][parameter];
      used[rank][parameter] = false;
    }
    for (int rank = 0; any && rank < group.size(); rank++) {
      gradients[rank][parameter] = sum / group.size();
    }
  }

  private void descend() {
    for (Tensor parameter : parameters) {
      if (parameter.grad().defined()) {
        parameter.detach().sub_(parameter.grad().detach().mul(new Scalar(0.125)));
      }
    }
  }

  private void require(int step) {
    for (int i = 0; i < count; i++) {
      double expected = gradients[group.rank()][i];
      Tensor gradient = parameters.get(i).grad();
      assertThat(gradient.defined())
          .as("p%d defined in step %d of %s", i, step, this)
          .isEqualTo(!Double.isNaN(expected));
      if (!gradient.defined()) {
        continue;
      }
      for (double value : Tensors.of(gradient).toDoubleArray()) {
        if (!(Math.abs(value - expected) <= 0.002 * Math.max(1, Math.abs(expected)))) {
          throw new AssertionError(
              "the gradient of p%d in step %d is %s, not %s: %s"
                  .formatted(i, step, value, expected, this));
        }
      }
    }
  }

  /** Takes a step in which something goes wrong, which all ranks must say with the name. */
  private void fail(DataParallel parallel, int step) {
    if (group.rank() == faultRank) {
      failHere(step);
    } else {
      loss(step, 0, -1).add(term(0, 6)).add(term(1, 6)).backward();
    }
    Throwable thrown = null;
    try {
      parallel.await();
    } catch (RuntimeException e) {
      thrown = e;
    }
    assertThat(thrown).as("failure of %s", this).isInstanceOf(GradientException.class);
    assertThat(thrown)
        .as("failure of %s", this)
        .hasMessageContaining(fault == Fault.TWICE ? "'p" : "'p" + faultParameter + "'");
  }

  private void failHere(int step) {
    Tensor parameter = parameters.get(faultParameter);
    boolean isDouble = parameter.scalar_type().value == torch.ScalarType.Double.value;
    switch (fault) {
      case UNFROZEN -> parameter.set_requires_grad(true);
      case MOVED -> parameter.set_data(parameter.detach().clone());
      case RETYPED ->
          parameter.set_data(
              parameter.detach().to(isDouble ? torch.ScalarType.Float : torch.ScalarType.Double));
      case DRIFTED -> parameter.detach().add_(new Scalar(1.0));
      default -> {}
    }
    switch (fault) {
      case THROWN -> throwInBackward();
      case MISSING -> loss(step, 0, faultParameter).backward();
      default -> {
        for (int i = 0; i < (fault == Fault.TWICE ? 2 : 1); i++) {
          loss(step, 0, -1).add(term(0, 6)).add(term(1, 6)).backward();
        }
      }
    }
  }

  private void throwInBackward() {
    VoidTensorHook throwing =
        new VoidTensorHook() {
          @Override
          public void call(TensorBase gradient) {
            throw new IllegalStateException("the program's own hook");
          }
        };
    int handle = parameters.get(faultParameter).register_hook(throwing);
    assertThatThrownBy(() -> term(faultParameter, 6).backward())
        .isInstanceOf(RuntimeException.class);
    parameters.get(faultParameter).remove_hook(handle);
  }
}
