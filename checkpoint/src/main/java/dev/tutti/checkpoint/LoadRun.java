package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents.Copies;
import dev.tutti.checkpoint.Contents.Parts;
import dev.tutti.checkpoint.Contents.Section;
import dev.tutti.checkpoint.Contents.Value;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.checkpoint.folder.PieceReader;
import dev.tutti.checkpoint.format.Json;
import dev.tutti.checkpoint.format.MalformedException;
import dev.tutti.checkpoint.format.Manifest;
import dev.tutti.checkpoint.format.Shape;
import dev.tutti.checkpoint.format.StoredRange;
import dev.tutti.state.StatePart;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** One load: all ranks check that everything fits before any of them changes a tensor. */
final class LoadRun {
  private static final long NONE = -1;

  /** How many ranks may read all files from the device. */
  private static final int DIRECT_RANKS = 4;

  private final ProcessGroup group;
  private final Agreement agreement;
  private final CheckpointFolder folder;
  private final Contents contents;
  private final @Nullable RuntimeException before;

  /** What is read, and where tensors that are not contiguous get it from. */
  private record Plan(
      Manifest manifest,
      Map<List<String>, List<StoredRange>> stored,
      SortedMap<Integer, List<TensorReader.Read>> reads,
      Map<Tensor, Tensor> copies) {}

  /**
   * Creates a load.
   *
   * @param collectives runs collectives on a thread that nobody interrupts
   * @param before the failure of the save before, if this rank did not await it
   */
  LoadRun(
      ProcessGroup group,
      Executor collectives,
      CheckpointFolder folder,
      Contents contents,
      @Nullable RuntimeException before) {
    this.before = before;
    this.group = group;
    this.agreement = new Agreement(group, collectives);
    this.folder = folder;
    this.contents = contents;
  }

  /** Loads the latest checkpoint, if there is one, and returns its step. */
  OptionalLong latest() {
    requireSaved("loading the latest checkpoint");
    byte[] chosen =
        agreement.onFirst(
            "loading the latest checkpoint", () -> bytes(folder.latest().orElse(NONE)));
    long step = ByteBuffer.wrap(chosen).getLong();
    if (step == NONE) {
      return OptionalLong.empty();
    }
    loadSaved(step);
    return OptionalLong.of(step);
  }

  private void requireSaved(String what) {
    agreement.onAll(
        what,
        () -> {
          if (before != null) {
            throw before;
          }
          return new byte[0];
        });
  }

  private static byte[] bytes(long step) {
    return ByteBuffer.allocate(Long.BYTES).putLong(step).array();
  }

  /** Loads a checkpoint. */
  void load(long step) {
    requireSaved("loading step " + step);
    loadSaved(step);
  }

  private void loadSaved(long step) {
    String what = "loading step " + step;
    Plan[] plan = new Plan[1];
    List<byte[]> planned =
        agreement.onAll(
            what,
            () -> {
              Manifest manifest = folder.manifest(step);
              Plan made = plan(manifest);
              reader(step, manifest).requireLengths(made.reads.keySet());
              plan[0] = made;
              return describe(manifest).getBytes(StandardCharsets.UTF_8);
            });
    problem(step, planned, Objects.requireNonNull(plan[0]).manifest)
        .ifPresent(
            problem -> {
              throw new CheckpointException(what + " failed: " + problem, null);
            });
    agreement.onAll(
        what + ", with tensors changed in part,",
        () -> {
          read(step, Objects.requireNonNull(plan[0]));
          return new byte[0];
        });
    agreement.onAll(
        what + ", with all tensors loaded,",
        () -> {
          restore(Objects.requireNonNull(plan[0]).manifest);
          return new byte[0];
        });
  }

  /** Describes the manifest that this rank sees, and the names of the parts that it has. */
  private String describe(Manifest manifest) {
    List<Object> names = new ArrayList<>();
    for (Section section : contents.sections()) {
      if (section instanceof Parts parts) {
        parts.state().parts().forEach(part -> names.add(List.of(parts.name(), part.name())));
      }
    }
    return Json.write(List.of((long) Arrays.hashCode(manifest.encode()), names));
  }

  /** Returns what the descriptions of all ranks show: another folder, or parts that nobody has. */
  private Optional<String> problem(long step, List<byte[]> planned, Manifest manifest) {
    Set<Object> manifests = new HashSet<>();
    Set<Object> held = new HashSet<>();
    for (byte[] each : planned) {
      try {
        List<?> fields = (List<?>) Objects.requireNonNull(Json.read(ByteBuffer.wrap(each)));
        manifests.add(fields.get(0));
        held.addAll((List<?>) fields.get(1));
      } catch (MalformedException e) {
        throw new IllegalStateException("another rank's description is " + e.getMessage(), e);
      }
    }
    if (manifests.size() > 1) {
      return Optional.of(folder.published(step) + " differs between ranks");
    }
    for (Section section : contents.sections()) {
      for (StoredRange range : manifest.ranges()) {
        if (section instanceof Parts
            && range.section().equals(section.name())
            && !held.contains(List.of(range.section(), range.tensor()))) {
          return Optional.of(
              "the checkpoint has a tensor that no rank of the program has, '%s', for section '%s'"
                  .formatted(range.tensor(), range.section()));
        }
      }
    }
    return Optional.empty();
  }

  private Plan plan(Manifest manifest) {
    Map<List<String>, List<StoredRange>> stored = new HashMap<>();
    for (StoredRange range : manifest.ranges()) {
      stored
          .computeIfAbsent(List.of(range.section(), range.tensor()), key -> new ArrayList<>())
          .add(range);
    }
    stored.values().forEach(all -> all.sort(Comparator.comparingLong(StoredRange::first)));
    Plan plan = new Plan(manifest, stored, new TreeMap<>(), new LinkedHashMap<>());
    for (Section section : contents.sections()) {
      switch (section) {
        case Copies copies -> plan(plan, copies);
        case Parts parts -> plan(plan, parts);
        case Value value ->
            require(manifest.values().containsKey(value.name()), "no values", value);
      }
    }
    return plan;
  }

  private static void require(boolean isFitting, String what, Section section) {
    if (!isFitting) {
      throw new IllegalArgumentException(
          "the checkpoint has %s for section '%s'".formatted(what, section.name()));
    }
  }

  private static void plan(Plan plan, Copies copies) {
    Set<String> unused = new HashSet<>();
    for (StoredRange range : plan.manifest.ranges()) {
      if (range.section().equals(copies.name())) {
        unused.add(range.tensor());
      }
    }
    for (int i = 0; i < copies.tensors().size(); i++) {
      Tensor tensor = copies.tensors().get(i);
      String name = copies.tensorNames().get(i);
      unused.remove(name);
      Tensor target = tensor;
      if (!tensor.isContiguous() && !tensor.segment().isReadOnly()) {
        target = Tensor.allocate(tensor.dtype(), tensor.shape());
        plan.copies.put(tensor, target);
      }
      plan(plan, copies, name, target, Shape.of(tensor.shape()), 0);
    }
    require(unused.isEmpty(), "tensors that the program lacks, " + unused + ",", copies);
  }

  private static void plan(Plan plan, Parts parts) {
    require(plan.manifest.counters().containsKey(parts.name()), "no counters", parts);
    for (StatePart part : parts.state().parts()) {
      Contents.requireStorable(parts.name(), part.name(), part.elements());
      if (part.elements().numel() > 0) {
        plan(plan, parts, part.name(), part.elements(), Shape.of(part.wholeShape()), part.first());
      }
    }
  }

  /** Plans to read the elements of a tensor from the files that have them. */
  private static void plan(
      Plan plan, Section section, String name, Tensor target, Shape shape, long first) {
    List<StoredRange> ranges = plan.stored.getOrDefault(List.of(section.name(), name), List.of());
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
        plan.reads
            .computeIfAbsent(range.file(), file -> new ArrayList<>())
            .add(
                new TensorReader.Read(
                    range.start() + (at - range.first()) * unit,
                    flat.narrow(0, at - first, until - at)));
        at = until;
      }
    }
    require(at == end, "no element " + at + " of tensor '" + name + "'", section);
  }

  /**
   * Reads the files. Few ranks read them from the device. More ranks share what the system's cache
   * holds of them, and begin at different files.
   */
  private void read(long step, Plan plan) throws IOException {
    PieceReader reader = reader(step, plan.manifest);
    List<Integer> files = new ArrayList<>(plan.reads.keySet());
    Collections.rotate(files, -(int) ((long) files.size() * group.rank() / group.size()));
    for (int file : files) {
      TensorReader.read(reader, file, plan.reads.getOrDefault(file, List.of()));
    }
    plan.copies.forEach(Tensor::copyFrom);
  }

  private PieceReader reader(long step, Manifest manifest) {
    return new PieceReader(
        folder.disk(), folder.published(step), manifest.files(), group.size() > DIRECT_RANKS);
  }

  private void restore(Manifest manifest) {
    for (Section section : contents.sections()) {
      switch (section) {
        case Copies copies -> {}
        case Parts parts ->
            parts.state().restored(Objects.requireNonNull(manifest.counters().get(parts.name())));
        case Value value ->
            value.restore().accept(Objects.requireNonNull(manifest.values().get(value.name())));
      }
    }
  }
}
