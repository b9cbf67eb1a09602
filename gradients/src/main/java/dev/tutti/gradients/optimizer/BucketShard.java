package dev.tutti.gradients.optimizer;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.state.StatePart;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A rank's share of a bucket: the part of its own, and the remainder that all ranks have. */
final class BucketShard {
  private final GradientBucket bucket;
  private final int rank;
  private final long part;
  private final long rest;
  private final long restStart;
  private final List<Tensor> partState = new ArrayList<>();
  private final List<Tensor> restState = new ArrayList<>();
  private Tensor stage;

  BucketShard(GradientBucket bucket, int rank, int size) {
    this.bucket = bucket;
    this.rank = rank;
    this.stage = bucket.tensor();
    part = bucket.tensor().numel() / size;
    restStart = part * size;
    rest = bucket.tensor().numel() - restStart;
  }

  private DType dtype() {
    return bucket.tensor().dtype();
  }

  /** Allocates the state of this rank's elements. */
  void allocate(ShardUpdate update) {
    partState.addAll(update.allocate(bucket.tensor().narrow(0, 0, part)));
    restState.addAll(update.allocate(bucket.tensor().narrow(0, 0, rest)));
  }

  /** Assigns two stages alternately to the buckets of each type. */
  static void assignStages(List<BucketShard> shards) {
    for (DType dtype : DType.values()) {
      List<BucketShard> alike = shards.stream().filter(shard -> shard.dtype() == dtype).toList();
      long numel = alike.stream().mapToLong(shard -> shard.bucket.tensor().numel()).max().orElse(0);
      Tensor[] turns = new Tensor[Math.min(2, alike.size())];
      Arrays.setAll(turns, i -> Tensor.allocate(dtype, numel));
      for (int i = 0; i < alike.size(); i++) {
        BucketShard shard = alike.get(i);
        shard.stage = turns[i % 2].narrow(0, 0, shard.bucket.tensor().numel());
      }
    }
  }

  List<Tensor> state() {
    List<Tensor> all = new ArrayList<>(partState);
    all.addAll(restState);
    return all;
  }

  /** Adds the ranges of parameters whose state this rank has. */
  void addParts(
      List<String> stateNames, List<String> names, List<Tensor> parameters, List<StatePart> parts) {
    addParts(stateNames, names, parameters, rank * part, part, partState, parts);
    addParts(stateNames, names, parameters, restStart, rest, restState, parts);
  }

  private void addParts(
      List<String> stateNames,
      List<String> names,
      List<Tensor> parameters,
      long start,
      long count,
      List<Tensor> state,
      List<StatePart> parts) {
    for (int i = 0; i < state.size(); i++) {
      String kind = i < stateNames.size() ? stateNames.get(i) : "state" + i;
      Tensor elements = state.get(i);
      if (elements.numel() != count) {
        throw new IllegalStateException(
            "the update allocated %d elements of %s for %d parameters; a state that is not one"
                    .formatted(elements.numel(), kind, count)
                + " element for each cannot be saved by ranges");
      }
      long position = 0;
      for (int parameter : bucket.parameters()) {
        Tensor whole = parameters.get(parameter);
        long from = Math.max(start, position);
        long to = Math.min(start + count, position + whole.numel());
        if (from < to) {
          parts.add(
              new StatePart(
                  kind + "/" + names.get(parameter),
                  whole.shape(),
                  from - position,
                  elements.narrow(0, from - start, to - from)));
        }
        position += whole.numel();
      }
    }
  }

  /** Copies this rank's parameters to the stage and updates them there. */
  void update(ShardUpdate update, long step, List<Tensor> parameters) {
    updateRange(update, step, parameters, rank * part, part, partState);
    updateRange(update, step, parameters, restStart, rest, restState);
  }

  private void updateRange(
      ShardUpdate update,
      long step,
      List<Tensor> parameters,
      long start,
      long count,
      List<Tensor> state) {
    if (count > 0) {
      copy(parameters, start, count, true);
      update.update(
          step, stage.narrow(0, start, count), bucket.tensor().narrow(0, start, count), state);
    }
  }

  /** Starts to gather the parts of all ranks; returns null if there are no parts. */
  @Nullable Work gather(ProcessGroup group) {
    if (part == 0) {
      return null;
    }
    Tensor all = stage.narrow(0, 0, restStart);
    return group.allGatherInto(all, all.narrow(0, rank * part, part), CallOptions.ASYNC);
  }

  /** Copies all parameters of the bucket out of the stage. */
  void copyOut(List<Tensor> parameters) {
    copy(parameters, 0, bucket.tensor().numel(), false);
  }

  /** Copies a range of the bucket between the stage and the parameters in that range. */
  private void copy(List<Tensor> parameters, long start, long count, boolean toStage) {
    long unit = dtype().byteSize();
    long position = 0;
    for (int parameter : bucket.parameters()) {
      Tensor tensor = parameters.get(parameter);
      long from = Math.max(start, position);
      long to = Math.min(start + count, position + tensor.numel());
      if (from < to) {
        MemorySegment own = tensor.segment();
        MemorySegment staged = stage.segment();
        long ownOffset = (from - position) * unit;
        long bytes = (to - from) * unit;
        if (toStage) {
          MemorySegment.copy(own, ownOffset, staged, from * unit, bytes);
        } else {
          MemorySegment.copy(staged, from * unit, own, ownOffset, bytes);
        }
      }
      position += tensor.numel();
    }
  }
}
