package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A rank's share of a bucket: the part of its own, and the remainder that all ranks have. */
final class BucketShard {
  private static final String MASTER = "master";

  private final GradientBucket bucket;
  private final StepPlace place;
  private final int rank;
  private final long part;
  private final long restStart;
  private final List<Range> ranges = new ArrayList<>();
  private final List<Piece> pieces;
  private final Tensor stage;
  private final boolean isFlat;

  /** Elements of the bucket that this rank updates. */
  private record Range(
      long start,
      long count,
      Tensor staged,
      Tensor gradients,
      List<Tensor> state,
      @Nullable Tensor master,
      List<Piece> pieces) {

    List<Tensor> all() {
      List<Tensor> all = new ArrayList<>(state);
      if (master != null) {
        all.add(master);
      }
      return all;
    }
  }

  /**
   * Elements of one parameter, and their place in the stage.
   *
   * @param parameter the number of the parameter
   * @param first the first element, among those of the parameter
   * @param start the same one, among those of the bucket
   */
  private record Piece(int parameter, long first, long start, Tensor staged, Tensor own) {}

  /**
   * Allocates the state of this rank's elements.
   *
   * @param stage memory of the size of the bucket, which other buckets use, too, unless it is flat
   * @param isFlat whether the stage is where the parameters are
   * @param parameters all parameters
   */
  BucketShard(
      GradientBucket bucket,
      StepPlace place,
      ProcessGroup group,
      Tensor stage,
      boolean isFlat,
      List<Tensor> parameters) {
    this.bucket = bucket;
    this.place = place;
    this.rank = group.rank();
    this.stage = stage;
    this.isFlat = isFlat;
    long numel = bucket.tensor().numel();
    part = numel / group.size();
    restStart = part * group.size();
    pieces = pieces(parameters, 0, numel);
    ranges.add(range(parameters, rank * part, part));
    ranges.add(range(parameters, restStart, numel - restStart));
  }

  private Range range(List<Tensor> parameters, long start, long count) {
    Tensor staged = stage.narrow(0, start, count);
    List<Piece> own = pieces(parameters, start, count);
    List<Tensor> state = place.state(staged);
    Tensor master = null;
    if (!stage.device().isCpu() && stage.dtype() != DType.FLOAT32) {
      master = place.allocate(DType.FLOAT32, count);
      copy(own, true);
      place.copy(master, staged);
    }
    Tensor gradients = bucket.tensor().narrow(0, start, count);
    return new Range(start, count, staged, gradients, state, master, own);
  }

  private List<Piece> pieces(List<Tensor> parameters, long start, long count) {
    List<Piece> found = new ArrayList<>();
    long position = 0;
    for (int parameter : bucket.parameters()) {
      Tensor tensor = parameters.get(parameter);
      long from = Math.max(start, position);
      long to = Math.min(start + count, position + tensor.numel());
      if (from < to) {
        Tensor own = tensor.view(tensor.numel()).narrow(0, from - position, to - from);
        Tensor staged = stage.narrow(0, from, to - from);
        found.add(new Piece(parameter, from - position, from, staged, own));
      }
      position += tensor.numel();
    }
    return found;
  }

  /** Returns two stages alternately for the buckets of each type. */
  static List<Tensor> stages(List<GradientBucket> buckets, StepPlace place) {
    Tensor[] stages = new Tensor[buckets.size()];
    for (DType dtype : DType.values()) {
      int[] alike = alike(buckets, dtype);
      long numel =
          Arrays.stream(alike).mapToLong(i -> buckets.get(i).tensor().numel()).max().orElse(0);
      Tensor[] turns = new Tensor[Math.min(2, alike.length)];
      Arrays.setAll(turns, i -> place.allocate(dtype, numel));
      for (int i = 0; i < alike.length; i++) {
        long own = buckets.get(alike[i]).tensor().numel();
        stages[alike[i]] = turns[i % 2].narrow(0, 0, own);
      }
    }
    return List.of(stages);
  }

  /** Returns memory of its own for each bucket. */
  static List<Tensor> flat(List<GradientBucket> buckets, StepPlace place) {
    return buckets.stream()
        .map(bucket -> place.allocate(bucket.tensor().dtype(), bucket.tensor().numel()))
        .toList();
  }

  /** Copies parameters into the memory of their buckets, and returns them there. */
  static List<Tensor> moved(
      List<Tensor> parameters, List<GradientBucket> buckets, List<Tensor> flat, StepPlace place) {
    Tensor[] moved = new Tensor[parameters.size()];
    for (int b = 0; b < flat.size(); b++) {
      long position = 0;
      for (int parameter : buckets.get(b).parameters()) {
        Tensor from = parameters.get(parameter);
        Tensor to = flat.get(b).narrow(0, position, from.numel()).view(from.shape());
        place.copy(to, from);
        moved[parameter] = to;
        position += from.numel();
      }
    }
    return List.of(moved);
  }

  private static int[] alike(List<GradientBucket> buckets, DType dtype) {
    int[] found = new int[buckets.size()];
    int count = 0;
    for (int i = 0; i < found.length; i++) {
      if (buckets.get(i).tensor().dtype() == dtype) {
        found[count++] = i;
      }
    }
    return Arrays.copyOf(found, count);
  }

  List<Tensor> state() {
    return ranges.stream().flatMap(each -> each.all().stream()).toList();
  }

  /** Adds the gradients that count on this rank: its part, and on rank 0 the remainder. */
  void addGradients(List<Tensor> to) {
    to.add(ranges.getFirst().gradients);
    if (rank == 0) {
      to.add(ranges.getLast().gradients);
    }
  }

  /** Adds the ranges of parameters whose state this rank has. */
  void addParts(
      List<String> stateNames, List<String> names, List<Tensor> parameters, List<StatePart> parts) {
    for (Range range : ranges) {
      for (int i = 0; i < range.state.size(); i++) {
        String kind = i < stateNames.size() ? stateNames.get(i) : "state" + i;
        addParts(kind, range, range.state.get(i), names, parameters, parts);
      }
      if (range.master != null) {
        addParts(MASTER, range, range.master, names, parameters, parts);
      }
    }
  }

  private void addParts(
      String kind,
      Range range,
      Tensor elements,
      List<String> names,
      List<Tensor> parameters,
      List<StatePart> parts) {
    if (elements.numel() != range.count) {
      throw new IllegalStateException(
          "the update allocated %d elements of %s for %d parameters; a state that is not one"
                  .formatted(elements.numel(), kind, range.count)
              + " element for each cannot be saved by ranges");
    }
    for (Piece piece : range.pieces) {
      parts.add(
          new StatePart(
              kind + "/" + names.get(piece.parameter),
              parameters.get(piece.parameter).shape(),
              piece.first,
              elements.narrow(0, piece.start - range.start, piece.own.numel())));
    }
  }

  /** Copies this rank's parameters to the stage and updates them there. */
  void update() {
    for (Range range : ranges) {
      if (range.count > 0) {
        if (range.master == null) {
          copy(range.pieces, true);
        }
        place.update(range.staged, range.master, range.gradients, range.state);
      }
    }
  }

  /** Starts to gather the parts of all ranks; returns null if there is nothing to wait for. */
  @Nullable Work gather(ProcessGroup group) {
    if (part == 0) {
      return null;
    }
    return place.gather(group, stage.narrow(0, 0, restStart), ranges.getFirst().staged);
  }

  /** Copies all parameters of the bucket out of the stage. */
  void copyOut() {
    copy(pieces, false);
  }

  private void copy(List<Piece> all, boolean toStage) {
    if (isFlat) {
      return;
    }
    for (Piece piece : all) {
      if (toStage) {
        place.copy(piece.staged, piece.own);
      } else {
        place.copy(piece.own, piece.staged);
      }
    }
  }
}
