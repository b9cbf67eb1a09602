package dev.tutti.spi;

import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Static methods that copy between several host tensors and one, for backends whose wire format has
 * only one.
 */
public final class Staging {
  private Staging() {}

  /**
   * Allocates a dense tensor as large as several tensors together.
   *
   * @param tensors the tensors, of one type, at least one
   */
  public static Tensor allocateLike(List<Tensor> tensors) {
    long numel = 0;
    for (Tensor tensor : tensors) {
      numel += tensor.numel();
    }
    return Tensor.allocate(tensors.get(0).dtype(), numel);
  }

  /**
   * Copies several tensors into a new one, one after another.
   *
   * @param tensors the tensors, of one type, at least one
   */
  public static Tensor flatten(List<Tensor> tensors) {
    Tensor flat = allocateLike(tensors);
    long start = 0;
    for (Tensor tensor : tensors) {
      flat.narrow(0, start, tensor.numel()).copyFrom(tensor);
      start += tensor.numel();
    }
    return flat;
  }

  /**
   * Copies one tensor back into several.
   *
   * @param flat a tensor made by {@link #flatten} or {@link #allocateLike}
   * @param tensors the tensors that it was made from
   */
  public static void unflatten(Tensor flat, List<Tensor> tensors) {
    long start = 0;
    for (Tensor tensor : tensors) {
      tensor.copyFrom(flat.narrow(0, start, tensor.numel()));
      start += tensor.numel();
    }
  }

  /**
   * Returns views of consecutive parts of a tensor along dimension 0.
   *
   * @param tensor a tensor with at least one dimension
   * @param rows the number of rows of each part, which add up to those of the tensor
   */
  public static List<Tensor> splitRows(Tensor tensor, long[] rows) {
    List<Tensor> parts = new ArrayList<>(rows.length);
    long start = 0;
    for (long count : rows) {
      parts.add(tensor.narrow(0, start, count));
      start += count;
    }
    return parts;
  }
}
