package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The plan that determines which parameters share a bucket (c10d: {@code
 * compute_bucket_assignment_by_size}).
 */
final class BucketPlan {
  /*
   * Parameters are taken in the order in which their gradients are expected. Parameters of the same
   * type and device share buckets; a bucket is closed once its bytes reach the limit. The limit is
   * small for the first bucket of each type and device, so that communication begins early. Buckets
   * are ordered by when the last of their gradients is expected, since they are reduced in that
   * order.
   */
  private record BucketType(DType dtype, Device device) {}

  private BucketPlan() {}

  /**
   * Divides parameters into buckets.
   *
   * @param parameters all parameters
   * @param order their indices, in the order in which gradients are expected
   * @param first the number of bytes at which the first bucket of a type and device is full
   * @param others the number of bytes at which each other bucket is full
   * @return for each bucket, the indices of its parameters, in the order of reduction
   */
  static List<List<Integer>> of(
      List<Tensor> parameters, List<Integer> order, long first, long others) {
    Map<BucketType, Filling> open = new HashMap<>();
    List<Filling> all = new ArrayList<>();
    for (int position = 0; position < order.size(); position++) {
      int index = order.get(position);
      Tensor parameter = parameters.get(index);
      BucketType type = new BucketType(parameter.dtype(), parameter.device());
      Filling filling = open.get(type);
      if (filling == null || filling.bytes >= filling.limit) {
        filling = new Filling(filling == null ? first : others);
        open.put(type, filling);
        all.add(filling);
      }
      filling.indices.add(index);
      filling.bytes += parameter.byteSize();
      filling.lastPosition = position;
    }
    all.sort((a, b) -> Integer.compare(a.lastPosition, b.lastPosition));
    return all.stream().map(filling -> List.copyOf(filling.indices)).toList();
  }

  private static final class Filling {
    final long limit;
    final List<Integer> indices = new ArrayList<>();
    long bytes;
    int lastPosition;

    Filling(long limit) {
      this.limit = limit;
    }
  }
}
