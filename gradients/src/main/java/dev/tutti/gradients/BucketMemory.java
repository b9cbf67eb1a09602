package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;

/** The buckets of one plan, in memory that lives until this object is closed. */
final class BucketMemory implements AutoCloseable {
  private final Arena arena = Arena.ofShared();
  private final Lanes lanes;
  private final SharedBuckets shared;
  private final List<List<Integer>> plan;
  private final Bucket[] buckets;
  private final int[] bucketOf;
  private final Tensor[] gradients;

  /**
   * Allocates zeroed buckets; all ranks must call this together.
   *
   * @param group the reducer's group
   * @param plan for each bucket, the indices of its parameters
   * @param list the parameters
   * @param allocator the allocator of the memory
   * @param lanes the reducer's streams
   */
  BucketMemory(
      ProcessGroup group,
      List<List<Integer>> plan,
      ParameterList list,
      BucketAllocator allocator,
      Lanes lanes) {
    this.plan = plan;
    this.lanes = lanes;
    shared =
        lanes.areBesideBackward()
            ? SharedBuckets.of(group, allocator, plan, list)
            : new SharedBuckets();
    bucketOf = new int[list.count()];
    gradients = new Tensor[list.count()];
    buckets = new Bucket[plan.size()];
    try {
      for (int b = 0; b < buckets.length; b++) {
        List<Integer> indices = plan.get(b);
        Tensor tensor = allocate(indices, list, allocator);
        boolean isLast = b == buckets.length - 1;
        Lane lane = lanes.find(tensor.device());
        boolean isBeside = !isLast && !tensor.device().isCpu() && lanes.areBesideBackward();
        buckets[b] = new Bucket(b, isLast, indices, tensor, list, allocator, lane, isBeside);
        for (int i = 0; i < indices.size(); i++) {
          bucketOf[indices.get(i)] = b;
          gradients[indices.get(i)] = buckets[b].gradients().get(i);
        }
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  private Tensor allocate(List<Integer> indices, ParameterList list, BucketAllocator allocator) {
    Tensor first = list.get(indices.getFirst());
    long numel = list.numel(indices);
    Tensor within = shared.take(first.device(), first.dtype(), numel);
    Tensor tensor =
        within == null ? allocator.allocate(arena, first.device(), first.dtype(), numel) : within;
    if (!tensor.isContiguous()
        || tensor.dim() != 1
        || tensor.numel() != numel
        || tensor.dtype() != first.dtype()
        || !tensor.device().equals(first.device())) {
      throw new IllegalArgumentException(
          "the allocator returned %s for %d elements of %s on %s"
              .formatted(tensor.describe(), numel, first.dtype().label(), first.device()));
    }
    allocator.zero(tensor);
    return tensor;
  }

  List<List<Integer>> plan() {
    return plan;
  }

  int count() {
    return buckets.length;
  }

  Bucket bucket(int index) {
    return buckets[index];
  }

  List<GradientBucket> all() {
    return List.copyOf(Arrays.asList(buckets));
  }

  int bucketOf(int parameter) {
    return bucketOf[parameter];
  }

  /** Returns the bucket of a parameter. */
  Bucket of(int parameter) {
    return buckets[bucketOf[parameter]];
  }

  Tensor gradient(int parameter) {
    return gradients[parameter];
  }

  /**
   * Frees the memory, once the device has done the work on it; from then on, views of it throw when
   * they are read or written.
   */
  @Override
  public void close() {
    arena.close();
    if (!shared.isEmpty()) {
      lanes.beforeCurrent();
      shared.close();
    }
  }
}
