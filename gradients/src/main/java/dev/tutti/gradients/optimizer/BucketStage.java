package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import java.util.List;

/** The memory in which the parameters of one bucket at a time are updated and gathered. */
final class BucketStage {
  private final DType dtype;
  private long numel;

  private BucketStage(DType dtype, long numel) {
    this.dtype = dtype;
    this.numel = numel;
  }

  /** Ensures that there is a stage of the bucket's type that is large enough for it. */
  static void fit(List<BucketStage> stages, GradientBucket bucket) {
    long needed = bucket.tensor().numel();
    for (BucketStage stage : stages) {
      if (stage.dtype == bucket.tensor().dtype()) {
        stage.numel = Math.max(stage.numel, needed);
        return;
      }
    }
    stages.add(new BucketStage(bucket.tensor().dtype(), needed));
  }

  /** Assigns two stages alternately to the buckets of each type. */
  static void assign(List<BucketStage> stages, List<BucketShard> shards) {
    for (BucketStage stage : stages) {
      List<BucketShard> alike =
          shards.stream().filter(shard -> shard.dtype() == stage.dtype).toList();
      Tensor[] turns = new Tensor[Math.min(2, alike.size())];
      for (int i = 0; i < turns.length; i++) {
        turns[i] = Tensor.allocate(stage.dtype, stage.numel);
      }
      for (int i = 0; i < alike.size(); i++) {
        alike.get(i).stageIn(turns[i % 2]);
      }
    }
  }
}
