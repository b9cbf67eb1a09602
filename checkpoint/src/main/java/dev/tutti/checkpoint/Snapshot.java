package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Contents.Copies;
import dev.tutti.checkpoint.Contents.Parts;
import dev.tutti.checkpoint.Contents.Section;
import dev.tutti.checkpoint.Contents.Value;
import dev.tutti.checkpoint.folder.WrittenRange;
import dev.tutti.checkpoint.format.Shape;
import dev.tutti.state.StatePart;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.BiConsumer;

/**
 * What a rank saves, copied at one moment, so that the program may change it while it is written.
 *
 * @param ranges for each section of tensors, what this rank may write
 * @param replicated the sections whose tensors all ranks have
 * @param counters for each divided section, its counters
 * @param values for each section of values, this rank's text
 */
record Snapshot(
    Map<String, List<WrittenRange>> ranges,
    SortedMap<String, Copies> replicated,
    SortedMap<String, Map<String, Long>> counters,
    SortedMap<String, List<String>> values) {

  /**
   * Takes this rank's share of the contents.
   *
   * @param buffer where tensors are copied
   * @param copier copies a tensor, its second argument, to one on the host, or begins to
   */
  static Snapshot take(
      Contents contents, ProcessGroup group, Buffer buffer, BiConsumer<Tensor, Tensor> copier) {
    Snapshot snapshot =
        new Snapshot(new LinkedHashMap<>(), new TreeMap<>(), new TreeMap<>(), new TreeMap<>());
    Map<String, List<Source>> sources = new LinkedHashMap<>();
    for (Section section : contents.sections()) {
      sources.put(section.name(), share(section, group));
      snapshot.describe(section);
    }
    MemorySegment memory = buffer.ofSize(byteSize(sources.values()));
    long start = 0;
    for (Section section : contents.sections()) {
      if (section instanceof Value) {
        continue;
      }
      List<WrittenRange> written = new ArrayList<>();
      for (Source source : sources.getOrDefault(section.name(), List.of())) {
        written.add(source.copyTo(memory.asSlice(start, source.tensor.byteSize()), copier));
        start += source.paddedSize();
      }
      snapshot.ranges.put(section.name(), written);
    }
    return snapshot;
  }

  /** A tensor that will be copied. */
  private record Source(String name, Shape shape, long first, Tensor tensor) {
    long paddedSize() {
      return Math.ceilDiv(tensor.byteSize(), Tensor.ALIGNMENT) * Tensor.ALIGNMENT;
    }

    WrittenRange copyTo(MemorySegment target, BiConsumer<Tensor, Tensor> copier) {
      copier.accept(Tensor.wrap(target, tensor.dtype(), tensor.shape()), tensor);
      return new WrittenRange(name, tensor.dtype(), shape, first, tensor.numel(), target);
    }
  }

  /** Returns how many bytes of a buffer this rank's share of contents takes. */
  static long byteSize(Contents contents, ProcessGroup group) {
    return byteSize(contents.sections().stream().map(section -> share(section, group)).toList());
  }

  private static long byteSize(Collection<List<Source>> shares) {
    return shares.stream().flatMap(List::stream).mapToLong(Source::paddedSize).sum();
  }

  private static List<Source> share(Section section, ProcessGroup group) {
    return switch (section) {
      case Copies copies -> {
        List<Source> own = new ArrayList<>();
        for (int i : Shares.of(copies.tensors(), group.size()).get(group.rank())) {
          Tensor tensor = copies.tensors().get(i);
          own.add(new Source(copies.tensorNames().get(i), Shape.of(tensor.shape()), 0, tensor));
        }
        yield own;
      }
      case Parts parts -> {
        List<Source> own = new ArrayList<>();
        for (StatePart part : parts.state().parts()) {
          Contents.requireStorable(parts.name(), part.name(), part.elements());
          own.add(
              new Source(part.name(), Shape.of(part.wholeShape()), part.first(), part.elements()));
        }
        yield own;
      }
      case Value value -> List.of();
    };
  }

  /** Adds what a section has beside tensors. */
  private void describe(Section section) {
    switch (section) {
      case Copies copies -> replicated.put(copies.name(), copies);
      case Parts parts -> counters.put(parts.name(), new TreeMap<>(parts.state().counters()));
      case Value value -> values.put(value.name(), List.of(text(value)));
    }
  }

  private static String text(Value value) {
    return Objects.requireNonNull(
        value.value().get(), () -> "the value of section '" + value.name() + "' is null");
  }
}
