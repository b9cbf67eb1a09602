package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.gradients.TrainingProgram;
import java.util.ArrayList;
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
 * A random program that trains a module: also which parameters are shared, their types, which
 * passes are within {@code noSync}, where {@code torch.grad} looks, and which backwards create a
 * graph.
 */
final class ModuleProgram extends TrainingProgram<ModuleProgram.Fault> {
  /** What goes wrong, if anything. */
  enum Fault {
    NONE,
    MISSING,
    UNFROZEN,
    MOVED,
    RETYPED,
    DRIFTED,
    THROWN,
    TWICE
  }

  private static final torch.ScalarType[] TYPES = {
    torch.ScalarType.Float, torch.ScalarType.Float, torch.ScalarType.Double, torch.ScalarType.Half
  };

  private final Module module = new Module();
  private final List<Tensor> parameters = new ArrayList<>();
  private final DataParallel parallel;

  ModuleProgram(long seed, ProcessGroup group) {
    super(seed, group, Fault.values(), Fault.UNFROZEN, Double.NaN);
    if (unused && (fault == Fault.MISSING || fault == Fault.THROWN)) {
      fault = Fault.NONE; // right where parameters may be unused
    }
    for (int i = 0; i < count; i++) {
      long[] shape = {1 + random.nextInt(700)};
      TensorOptions type = new TensorOptions(TYPES[random.nextInt(TYPES.length)]);
      Tensor own = torch.full(shape, new Scalar((double) group.rank()), type);
      parameters.add(new Tensor(module.register_parameter("p" + i, own, !frozen[i])));
      if (random.nextInt(4) == 0) {
        module.register_parameter("p" + i + "again", parameters.get(i), !frozen[i]);
      }
    }
    parallel = new DataParallel(module, group, unused ? OPTIONS.withUnusedParameters() : OPTIONS);
  }

  @Override
  protected void step(int step) {
    int clear = random.nextInt(3);
    int passes = random.nextInt(3) == 0 ? 3 : 1;
    look(step);
    if (clear > 0) {
      module.zero_grad(clear == 2);
      for (int i = 0; i < count; i++) {
        clear(i, clear == 2 ? Double.NaN : 0);
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
    reduce(step);
    descend();
  }

  @Override
  protected void reduceGradients() {
    parallel.await();
  }

  /** Without unused parameters, the last pass has all. */
  @Override
  protected double factor(Random drawn, int pass, int parameter) {
    boolean uses = drawn.nextInt(3) > 0 || (!unused && pass == 0);
    return uses ? 6.0 * (drawn.nextInt(9) - 4) : Double.NaN;
  }

  private void backward(int step, int pass) {
    Tensor loss = loss(pass(step, pass));
    if (loss.requires_grad()) {
      boolean withGraph = at(3, group.rank(), step, pass).nextInt(4) == 0;
      loss.backward(new Tensor(), new BoolOptional(), withGraph, new TensorArrayRefOptional());
    }
  }

  private Tensor loss(double... factors) {
    Tensor loss = torch.zeros(new long[0], new TensorOptions(torch.ScalarType.Double));
    for (int i = 0; i < count; i++) {
      if (!Double.isNaN(factors[i])) {
        loss = loss.add(term(i, factors[i]));
      }
    }
    return loss;
  }

  private Tensor term(int parameter, double factor) {
    return parameters.get(parameter).mul(new Scalar(factor)).to(torch.ScalarType.Double).sum();
  }

  /** Requests some gradients without writing them, on some ranks. */
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

  private void descend() {
    for (Tensor parameter : parameters) {
      if (parameter.grad().defined()) {
        parameter.detach().sub_(parameter.grad().detach().mul(new Scalar(0.125)));
      }
    }
  }

  @Override
  protected double[] gradient(int parameter) {
    Tensor gradient = parameters.get(parameter).grad();
    return gradient.defined() ? Tensors.of(gradient).toDoubleArray() : new double[0];
  }

  @Override
  protected String fail(boolean here, int faultRank) {
    double[] factors = factors();
    if (here) {
      failHere(factors);
    }
    if (!here || fault != Fault.THROWN) {
      loss(factors).backward();
    }
    return fault == Fault.TWICE ? "'p" : "'p" + faultParameter + "'";
  }

  private void failHere(double... factors) {
    Tensor parameter = parameters.get(faultParameter);
    boolean isDouble = parameter.scalar_type().value == torch.ScalarType.Double.value;
    switch (fault) {
      case UNFROZEN -> parameter.set_requires_grad(true);
      case MOVED -> parameter.set_data(parameter.detach().clone());
      case RETYPED ->
          parameter.set_data(
              parameter.detach().to(isDouble ? torch.ScalarType.Float : torch.ScalarType.Double));
      case DRIFTED -> parameter.detach().add_(new Scalar(1.0));
      case MISSING -> factors[faultParameter] = Double.NaN;
      case THROWN -> throwInBackward();
      case TWICE -> loss(factors).backward();
      default -> throw new AssertionError(fault);
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

  @Override
  public void close() {
    parallel.close();
  }
}
