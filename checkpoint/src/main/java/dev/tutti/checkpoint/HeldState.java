package dev.tutti.checkpoint;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/** A copy of a rank's state after the last step that all ranks had done, in memory of the host. */
final class HeldState {
  /*
   * A rank that is lost in the middle of a step leaves the others with state that is half changed, and
   * not alike: some were done with the step. So each rank goes back to its copy. The copies of two
   * ranks are of the same step, or one is a step ahead: its rank saw the agreement on that step, and
   * the other did not. The later copy counts, as all ranks had done that step.
   */
  private static final long CHUNK_BYTES = 16L << 20;

  /** The step; -1 if this rank has no state. */
  private long step = -1;

  private final List<Tensor> copies = new ArrayList<>();
  private List<String> texts = List.of();

  static boolean hasParts(Contents contents) {
    return contents.sections().stream().anyMatch(Contents.Parts.class::isInstance);
  }

  private static List<Tensor> tensors(Contents contents) {
    List<Tensor> all = new ArrayList<>();
    for (Contents.Section section : contents.sections()) {
      if (section instanceof Contents.Copies of) {
        all.addAll(of.tensors());
      }
    }
    return all;
  }

  private static List<Contents.Value> values(Contents contents) {
    return contents.sections().stream()
        .filter(Contents.Value.class::isInstance)
        .map(Contents.Value.class::cast)
        .toList();
  }

  /** Forgets the state. */
  void clear() {
    step = -1;
  }

  /** Copies the state after a step. */
  void take(long done, Contents contents) {
    List<Tensor> tensors = tensors(contents);
    step = -1;
    for (int i = 0; i < tensors.size(); i++) {
      Tensor tensor = tensors.get(i);
      if (i == copies.size()) {
        copies.add(Tensor.allocate(tensor.dtype(), tensor.shape()));
      } else if (copies.get(i).dtype() != tensor.dtype() || !copies.get(i).sameShape(tensor)) {
        copies.set(i, Tensor.allocate(tensor.dtype(), tensor.shape()));
      }
      HostCopy.toHost(copies.get(i), tensor);
    }
    copies.subList(tensors.size(), copies.size()).clear();
    texts = values(contents).stream().map(each -> each.value().get()).toList();
    step = done;
  }

  /**
   * Puts all ranks into the state after the last step that a rank has.
   *
   * @return the step; -1 if no rank has any
   * @throws IllegalArgumentException if the tensors are not those that were copied
   */
  long restore(ProcessGroup group, Contents contents) {
    List<Long> steps = steps(group);
    long last = steps.stream().mapToLong(Long::longValue).max().orElseThrow();
    if (last < 0) {
      return last;
    }
    List<Tensor> tensors = tensors(contents);
    if (step == last) {
      requireFitting(tensors);
      for (int i = 0; i < tensors.size(); i++) {
        HostCopy.fromHost(tensors.get(i), copies.get(i));
      }
    }
    restoreTexts(group, contents, steps, last);
    boolean isKnown = steps.stream().allMatch(each -> each == last);
    if (!isKnown || !isAlike(group)) {
      tensors.forEach(tensor -> broadcast(group, tensor, steps.indexOf(last)));
    }
    return last;
  }

  private List<Long> steps(ProcessGroup group) {
    return group.allGatherObject(String.valueOf(step), Codec.STRING).stream()
        .map(Long::valueOf)
        .toList();
  }

  /** Gives all ranks the tensors of rank 0. */
  static void begin(ProcessGroup group, Contents contents) {
    tensors(contents).forEach(tensor -> broadcast(group, tensor, 0));
  }

  private void requireFitting(List<Tensor> tensors) {
    for (int i = 0; i < Math.max(copies.size(), tensors.size()); i++) {
      if (i >= copies.size() || i >= tensors.size() || !copies.get(i).sameShape(tensors.get(i))) {
        throw new IllegalArgumentException(
            "tensor %d of the state is not as it was in the generation before".formatted(i));
      }
    }
  }

  private void restoreTexts(ProcessGroup group, Contents contents, List<Long> steps, long last) {
    List<Contents.Value> values = values(contents);
    for (int i = 0; i < values.size(); i++) {
      List<String> all = group.allGatherObject(step == last ? texts.get(i) : "", Codec.STRING);
      List<String> known = new ArrayList<>();
      for (int rank = 0; rank < all.size(); rank++) {
        if (steps.get(rank) == last) {
          known.add(all.get(rank));
        }
      }
      values.get(i).restore().accept(known);
    }
  }

  private static void broadcast(ProcessGroup group, Tensor tensor, int root) {
    if (tensor.numel() == 0) {
      return;
    }
    if (!tensor.isContiguous()) {
      group.broadcast(tensor, root);
      return;
    }
    Tensor flat = tensor.flatten();
    long chunk = CHUNK_BYTES / tensor.dtype().byteSize();
    for (long first = 0; first < flat.numel(); first += chunk) {
      group.broadcast(flat.narrow(0, first, Math.min(chunk, flat.numel() - first)), root);
    }
  }

  /**
   * Checks that the copies of all ranks are alike.
   *
   * @throws CheckpointException on all ranks, if two differ
   */
  void requireAlike(ProcessGroup group) {
    if (!isAlike(group)) {
      throw new CheckpointException(
          "rank %d/%d: the ranks have different state of step %d, after one sent it to the others"
              .formatted(group.rank(), group.size(), step),
          null);
    }
  }

  private boolean isAlike(ProcessGroup group) {
    CRC32C sum = new CRC32C();
    for (Tensor copy : copies) {
      MemorySegment bytes = copy.segment();
      for (long first = 0; first < bytes.byteSize(); first += CHUNK_BYTES) {
        long size = Math.min(CHUNK_BYTES, bytes.byteSize() - first);
        sum.update(bytes.asSlice(first, size).asByteBuffer());
      }
    }
    Tensor bounds = Tensor.of(sum.getValue(), -sum.getValue());
    group.allReduce(bounds, ReduceOp.MAX);
    return bounds.getLong(0) == -bounds.getLong(1);
  }
}
