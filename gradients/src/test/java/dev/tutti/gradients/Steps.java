package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;

/** Parameters and steps of tests. */
final class Steps {
  private Steps() {}

  /** Returns parameters of the given numbers of elements. */
  static List<Tensor> parameters(long... sizes) {
    List<Tensor> all = new ArrayList<>();
    for (long size : sizes) {
      all.add(Tensor.allocate(DType.FLOAT32, size));
    }
    return all;
  }

  /** Takes a step in which each gradient is a value plus its index. */
  static void step(GradientReducer reducer, int count, double value) {
    for (int i = count - 1; i >= 0; i--) {
      reducer.gradient(i).fill(value + i);
      reducer.ready(i);
    }
    reducer.await();
  }

  /** Takes a step of two gradients that adds a value to each element. */
  static void addTo(GradientReducer reducer, double value) {
    for (int i = 1; i >= 0; i--) {
      Tensor gradient = reducer.gradient(i);
      for (long k = 0; k < gradient.numel(); k++) {
        gradient.setDouble(k, gradient.getDouble(k) + value);
      }
      reducer.ready(i);
    }
    reducer.await();
  }
}
