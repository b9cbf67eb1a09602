package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import java.util.List;

/** Memory in which the parameters of one bucket at a time are updated and gathered. */
final class BucketStage {
  private final DType dtype;
  private long numel;

  private BucketStage(DType dtype, long numel) {
    this.dtype = dtype;
    this.numel = numel;
  }

  /** Sees to it that there is a stage of the type of a bucket, large enough for it. */
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

  /** Gives buckets of one type, in turns, one of two stages. */
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
