package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Optional;

/**
 * Stochastic gradient descent with momentum, weight decay and Nesterov's variant, as in PyTorch's
 * {@code SGD}; for float32 in host memory, and for float32, float16 and bfloat16 on devices. With
 * momentum, its state is one tensor of the size of the parameters; without, it has none.
 */
public final class Sgd implements ShardUpdate {
  private final float momentum;
  private final float dampening;
  private final float weightDecay;
  private final boolean nesterov;
  private volatile float learningRate;
  private final FloatBlock parameter = new FloatBlock();
  private final FloatBlock gradient = new FloatBlock();
  private final FloatBlock velocity = new FloatBlock();

  /**
   * Creates plain gradient descent.
   *
   * @param learningRate the factor of a gradient
   */
  public Sgd(double learningRate) {
    this(learningRate, 0, 0, 0, false);
  }

  /**
   * Creates gradient descent.
   *
   * @param learningRate the factor of a gradient
   * @param momentum the share of the last velocity that is kept, from 0 to 1
   * @param dampening the share of a gradient that is not added to the velocity, from 0 to 1
   * @param weightDecay the share of the parameter that is added to its gradient, not negative
   * @param nesterov whether to look ahead, which requires momentum and no dampening
   */
  public Sgd(
      double learningRate,
      double momentum,
      double dampening,
      double weightDecay,
      boolean nesterov) {
    if (!(momentum >= 0 && momentum <= 1 && dampening >= 0 && dampening <= 1)) {
      throw new IllegalArgumentException(
          "momentum and dampening must be from 0 to 1, not " + momentum + " and " + dampening);
    }
    if (!(weightDecay >= 0)) {
      throw new IllegalArgumentException("weight decay must not be negative: " + weightDecay);
    }
    if (nesterov && (momentum == 0 || dampening != 0)) {
      throw new IllegalArgumentException("Nesterov's variant needs momentum and no dampening");
    }
    this.momentum = (float) momentum;
    this.dampening = (float) dampening;
    this.weightDecay = (float) weightDecay;
    this.nesterov = nesterov;
    setLearningRate(learningRate);
  }

  /**
   * Changes the learning rate from the next step on; it must be the same on all ranks.
   *
   * @param newRate the factor of a gradient, not negative
   */
  public void setLearningRate(double newRate) {
    learningRate = LearningRate.checked(newRate);
  }

  @Override
  public boolean supports(DType dtype) {
    return dtype == DType.FLOAT32;
  }

  @Override
  public Optional<FusedUpdate> fused() {
    return Optional.of(
        new FusedUpdate(true, learningRate, momentum, dampening, nesterov ? 1 : 0, weightDecay));
  }

  @Override
  public List<Tensor> allocate(Tensor parameters) {
    return momentum == 0 ? List.of() : List.of(Tensor.allocate(DType.FLOAT32, parameters.numel()));
  }

  @Override
  public List<String> stateNames() {
    return momentum == 0 ? List.of() : List.of("momentum_buffer");
  }

  @Override
  public void update(long step, Tensor parameters, Tensor gradients, List<Tensor> state) {
    float rate = learningRate;
    float kept = step == 1 ? 0 : momentum;
    float added = step == 1 ? 1 : 1 - dampening;
    for (long start = 0; start < parameters.numel(); start += FloatBlock.SIZE) {
      parameter.load(parameters, start);
      gradient.load(gradients, start);
      if (weightDecay != 0) {
        decay(parameter.elements, gradient.elements, weightDecay);
      }
      if (momentum != 0) {
        velocity.load(state.getFirst(), start);
        accelerate(velocity.elements, gradient.elements, kept, added);
        velocity.store(state.getFirst(), start);
      }
      if (momentum == 0) {
        descend(parameter.elements, gradient.elements, rate);
      } else if (nesterov) {
        descendAhead(parameter.elements, gradient.elements, velocity.elements, momentum, rate);
      } else {
        descend(parameter.elements, velocity.elements, rate);
      }
      parameter.store(parameters, start);
    }
  }

  private static void decay(float[] p, float[] g, float weightDecay) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      g[i] += weightDecay * p[i];
    }
  }

  private static void accelerate(float[] v, float[] g, float kept, float added) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      v[i] = kept * v[i] + added * g[i];
    }
  }

  private static void descend(float[] p, float[] direction, float rate) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      p[i] -= rate * direction[i];
    }
  }

  private static void descendAhead(float[] p, float[] g, float[] v, float momentum, float rate) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      p[i] -= rate * (g[i] + momentum * v[i]);
    }
  }
}
