package dev.tutti.gradients;

import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The buckets of one plan, in memory that lives until they are closed. */
final class BucketMemory implements AutoCloseable {
  private final Arena arena = Arena.ofShared();
  private final List<List<Integer>> plan;
  private final Bucket[] buckets;
  private final int[] bucketOf;
  private final Tensor[] gradients;
  private final long byteSize;

  /**
   * Allocates zeroed buckets.
   *
   * @param plan indices of parameters for each bucket
   * @param list the parameters
   * @param allocator has the memory
   */
  BucketMemory(List<List<Integer>> plan, ParameterList list, BucketAllocator allocator) {
    this.plan = plan;
    bucketOf = new int[list.count()];
    gradients = new Tensor[list.count()];
    List<Bucket> made = new ArrayList<>();
    long bytes = 0;
    for (List<Integer> indices : plan) {
      Tensor first = list.get(indices.getFirst());
      long numel = indices.stream().mapToLong(index -> list.get(index).numel()).sum();
      Tensor tensor = allocator.allocate(arena, first.device(), first.dtype(), numel);
      if (!tensor.isContiguous()
          || tensor.dimensions() != 1
          || tensor.numel() != numel
          || tensor.dtype() != first.dtype()
          || !tensor.device().equals(first.device())) {
        throw new IllegalArgumentException(
            "the allocator returned %s for %d elements of %s on %s"
                .formatted(tensor.describe(), numel, first.dtype().label(), first.device()));
      }
      allocator.zero(tensor);
      Bucket bucket =
          new Bucket(made.size(), made.size() == plan.size() - 1, indices, tensor, list);
      for (int i = 0; i < indices.size(); i++) {
        bucketOf[indices.get(i)] = bucket.index();
        gradients[indices.get(i)] = bucket.gradients().get(i);
      }
      made.add(bucket);
      bytes += tensor.byteSize();
    }
    buckets = made.toArray(Bucket[]::new);
    byteSize = bytes;
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

  Tensor gradient(int parameter) {
    return gradients[parameter];
  }

  long byteSize() {
    return byteSize;
  }

  /** Frees the memory; views of it throw when they are read or written from now on. */
  @Override
  public void close() {
    arena.close();
  }
}
