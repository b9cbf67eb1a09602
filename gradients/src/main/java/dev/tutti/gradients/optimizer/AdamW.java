package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Optional;

/**
 * Adam with decoupled weight decay, as PyTorch's {@code AdamW} (I. Loshchilov, F. Hutter,
 * "Decoupled Weight Decay Regularization", ICLR 2019); for float32 in host memory, and for float32,
 * float16 and bfloat16 on devices. Its state is two tensors of the size of the parameters: the
 * running means of the gradients and of their squares.
 */
public final class AdamW implements ShardUpdate {
  private final double beta1;
  private final double beta2;
  private final float epsilon;
  private final double weightDecay;
  private volatile float learningRate;
  private final FloatBlock parameter = new FloatBlock();
  private final FloatBlock gradient = new FloatBlock();
  private final FloatBlock mean = new FloatBlock();
  private final FloatBlock square = new FloatBlock();

  /**
   * Creates Adam with PyTorch's defaults: betas 0.9 and 0.999, epsilon 1e-8, weight decay 0.01.
   *
   * @param learningRate the size of a step
   */
  public AdamW(double learningRate) {
    this(learningRate, 0.9, 0.999, 1e-8, 0.01);
  }

  /**
   * Creates Adam.
   *
   * @param learningRate the size of a step
   * @param beta1 the share of the mean of gradients that a step keeps, from 0 to less than 1
   * @param beta2 the share of the mean of squares that a step keeps, from 0 to less than 1
   * @param epsilon the number added to the root of the mean of squares, not negative
   * @param weightDecay the share of a parameter that a step removes, times the learning rate; not
   *     negative
   */
  public AdamW(
      double learningRate, double beta1, double beta2, double epsilon, double weightDecay) {
    if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1)) {
      throw new IllegalArgumentException(
          "betas must be at least 0 and less than 1, not " + beta1 + " and " + beta2);
    }
    if (!(epsilon >= 0 && weightDecay >= 0)) {
      throw new IllegalArgumentException(
          "epsilon and weight decay must not be negative: " + epsilon + " and " + weightDecay);
    }
    this.beta1 = beta1;
    this.beta2 = beta2;
    this.epsilon = (float) epsilon;
    this.weightDecay = weightDecay;
    setLearningRate(learningRate);
  }

  /**
   * Changes the learning rate from the next step on; it must be the same on all ranks.
   *
   * @param newRate the size of a step, not negative
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
    return Optional.of(new FusedUpdate(false, learningRate, beta1, beta2, epsilon, weightDecay));
  }

  @Override
  public List<Tensor> allocate(Tensor parameters) {
    return List.of(
        Tensor.allocate(DType.FLOAT32, parameters.numel()),
        Tensor.allocate(DType.FLOAT32, parameters.numel()));
  }

  @Override
  public List<String> stateNames() {
    return List.of("exp_avg", "exp_avg_sq");
  }

  @Override
  public void update(long step, Tensor parameters, Tensor gradients, List<Tensor> state) {
    double rate = learningRate;
    float left = (float) (1 - rate * weightDecay);
    float size = (float) (rate / (1 - Math.pow(beta1, (double) step)));
    float root = (float) Math.sqrt(1 - Math.pow(beta2, (double) step));
    Tensor means = state.get(0);
    Tensor squares = state.get(1);
    for (long start = 0; start < parameters.numel(); start += FloatBlock.SIZE) {
      parameter.load(parameters, start);
      gradient.load(gradients, start);
      mean.load(means, start);
      square.load(squares, start);
      average(mean.elements, gradient.elements, (float) (1 - beta1));
      averageSquare(square.elements, gradient.elements, (float) beta2, (float) (1 - beta2));
      descend(parameter.elements, mean.elements, square.elements, left, size, root, epsilon);
      parameter.store(parameters, start);
      mean.store(means, start);
      square.store(squares, start);
    }
  }

  private static void average(float[] m, float[] g, float share) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      m[i] += (g[i] - m[i]) * share;
    }
  }

  private static void averageSquare(float[] v, float[] g, float kept, float share) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      v[i] = kept * v[i] + share * g[i] * g[i];
    }
  }

  private static void descend(
      float[] p, float[] m, float[] v, float left, float size, float root, float epsilon) {
    for (int i = 0; i < FloatBlock.SIZE; i++) {
      p[i] = p[i] * left - size * (m[i] / ((float) Math.sqrt(v[i]) / root + epsilon));
    }
  }
}
