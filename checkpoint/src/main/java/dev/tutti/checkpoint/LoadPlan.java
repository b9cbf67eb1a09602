package dev.tutti.checkpoint;

import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents.Copies;
import dev.tutti.checkpoint.Contents.Parts;
import dev.tutti.checkpoint.Contents.Section;
import dev.tutti.checkpoint.Contents.Value;
import dev.tutti.checkpoint.format.Manifest;
import dev.tutti.checkpoint.format.Shape;
import dev.tutti.checkpoint.format.StoredRange;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a rank reads of a checkpoint, and where it belongs. */
final class LoadPlan {
  private final Manifest manifest;
  private final Map<List<String>, List<StoredRange>> stored = new HashMap<>();
  private final Map<Tensor, Tensor> copies = new LinkedHashMap<>();

  /** What all ranks read. */
  final Reads shared = new Reads();

  /** What this rank reads for itself. */
  final Reads own = new Reads();

  /**
   * Creates a plan, which changes no tensor.
   *
   * @throws IllegalArgumentException if the checkpoint does not have what the contents need
   */
  LoadPlan(Manifest manifest, Contents contents) {
    this.manifest = manifest;
    for (StoredRange range : manifest.ranges()) {
      stored
          .computeIfAbsent(List.of(range.section(), range.tensor()), key -> new ArrayList<>())
          .add(range);
    }
    stored.values().forEach(all -> all.sort(Comparator.comparingLong(StoredRange::first)));
    for (Section section : contents.sections()) {
      switch (section) {
        case Copies whole -> plan(whole);
        case Parts parts -> plan(parts);
        case Value value ->
            require(manifest.values().containsKey(value.name()), "no values", value);
      }
    }
  }

  Manifest manifest() {
    return manifest;
  }

  /** Copies to tensors that are not contiguous what was read for them. */
  void finish() {
    copies.forEach(Tensor::copyFrom);
  }

  private static void require(boolean isFitting, String what, Section section) {
    if (!isFitting) {
      throw new IllegalArgumentException(
          "the checkpoint has %s for section '%s'".formatted(what, section.name()));
    }
  }

  private void plan(Copies section) {
    Set<String> unused = new HashSet<>();
    for (StoredRange range : manifest.ranges()) {
      if (range.section().equals(section.name())) {
        unused.add(range.tensor());
      }
    }
    for (int i = 0; i < section.tensors().size(); i++) {
      Tensor tensor = section.tensors().get(i);
      String name = section.tensorNames().get(i);
      unused.remove(name);
      Tensor target = tensor;
      if (!tensor.isContiguous() && !tensor.segment().isReadOnly()) {
        target = Tensor.allocate(tensor.dtype(), tensor.shape());
        copies.put(tensor, target);
      }
      plan(shared, section, name, target, Shape.of(tensor.shape()), 0);
    }
    require(unused.isEmpty(), "tensors that the program lacks, " + unused + ",", section);
  }

  private void plan(Parts parts) {
    require(manifest.counters().containsKey(parts.name()), "no counters", parts);
    for (StatePart part : parts.state().parts()) {
      Contents.requireStorable(parts.name(), part.name(), part.elements());
      if (part.elements().numel() > 0) {
        plan(own, parts, part.name(), part.elements(), Shape.of(part.wholeShape()), part.first());
      }
    }
  }

  /** Plans to read the elements of a tensor from the files that have them. */
  private void plan(
      Reads reads, Section section, String name, Tensor target, Shape shape, long first) {
    List<StoredRange> ranges = stored.getOrDefault(List.of(section.name(), name), List.of());
    require(!ranges.isEmpty(), "no tensor '" + name + "'", section);
    StoredRange any = ranges.getFirst();
    require(
        any.dtype() == target.dtype() && any.shape().equals(shape),
        "'%s' as %s%s, not as %s%s,"
            .formatted(name, any.dtype().label(), any.shape(), target.dtype().label(), shape),
        section);
    require(
        !target.segment().isReadOnly(),
        "'%s', but the program's tensor is read-only,".formatted(name),
        section);
    Tensor flat = target.view(target.numel());
    long unit = target.dtype().byteSize();
    long at = first;
    long end = first + target.numel();
    for (StoredRange range : ranges) {
      long until = Math.min(end, range.end());
      if (range.first() <= at && at < until) {
        reads.add(
            range.file(),
            range.start() + (at - range.first()) * unit,
            flat.narrow(0, at - first, until - at));
        at = until;
      }
    }
    require(at == end, "no element " + at + " of tensor '" + name + "'", section);
  }
}
