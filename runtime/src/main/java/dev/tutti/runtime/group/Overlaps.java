package dev.tutti.runtime.group;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Refuses outputs that share bytes with each other, and inputs that share bytes with outputs unless
 * the operation works in place.
 *
 * <p>Of a strided output, only the first elements, those that are adjacent in memory, are compared
 * with the other tensors. Other strided tensors are not checked: a backend gets copies of them, as
 * it does of read-only memory of the Java heap, so overlapping inputs do no harm. Checks of one
 * input and one output allocate only to report an error.
 */
final class Overlaps {
  /** The maximum number of elements whose places are compared one by one. */
  private static final long MOST_COMPARED = 1 << 16;

  private static final Comparator<Range> BY_PLACE =
      Comparator.comparingInt(Range::memory).thenComparingLong(Range::from);

  /** Which input may lie in which output, or which output in which input. */
  enum InPlace {
    /** None. */
    NONE,
    /** The single tensor on one side may be this rank's tensor on the other side. */
    OWN_TENSOR,
    /** The smaller tensor of a pair may be this rank's part of the larger one. */
    OWN_PART
  }

  private final Checks checks;
  private final int rank;

  /** A tensor as a range of bytes of a piece of memory. */
  private record Range(boolean isOutput, int index, int memory, long from, long to) {
    long size() {
      return to - from;
    }
  }

  /** The two ranges of one side that reach farthest. */
  private static final class Farthest {
    private @Nullable Range first;
    private @Nullable Range second;

    void add(Range range) {
      if (first == null || range.to > first.to) {
        second = first;
        first = range;
      } else if (second == null || range.to > second.to) {
        second = range;
      }
    }
  }

  Overlaps(Checks checks, int rank) {
    this.checks = checks;
    this.rank = rank;
  }

  /**
   * Checks an operation with one output and one input.
   *
   * @param begin where this rank's part begins in the larger one, in bytes
   */
  void require(OpType op, Tensor output, Tensor input, InPlace allowed, long begin) {
    if (!isRange(output) || !isRange(input)) {
      return;
    }
    long out = output.segment().address();
    long in = input.segment().address();
    if (out < in + input.byteSize()
        && in < out + output.byteSize()
        && sameMemory(output.segment(), input.segment())
        && !(allowed == InPlace.OWN_PART
            && isPart(out, output.byteSize(), in, input.byteSize(), begin))) {
      throw bad(op, "output", output, "input", input, allowed);
    }
  }

  /** Checks an operation with several outputs, several inputs or both, in O(n log n) steps. */
  void require(OpType op, List<Tensor> outputs, List<Tensor> inputs, InPlace allowed) {
    requireApart(op, "output", outputs);
    List<Range> ranges = new ArrayList<>(outputs.size() + inputs.size());
    IdentityHashMap<Object, Integer> arrays = new IdentityHashMap<>(0);
    addRanges(ranges, true, outputs, arrays);
    addRanges(ranges, false, inputs, arrays);
    ranges.sort(BY_PLACE);
    Farthest farthestOutput = new Farthest();
    Farthest farthestInput = new Farthest();
    int memory = 0;
    for (Range range : ranges) {
      if (range.memory != memory) {
        memory = range.memory;
        farthestOutput = new Farthest();
        farthestInput = new Farthest();
      }
      Farthest others = range.isOutput ? farthestInput : farthestOutput;
      Range clash = clash(range, others, allowed, outputs.size() == 1);
      if (clash != null) {
        throw bad(op, outputs, inputs, range, clash, allowed);
      }
      (range.isOutput ? farthestOutput : farthestInput).add(range);
    }
  }

  /** Checks tensors that are written, each a part of an argument, in O(n log n) steps. */
  void requireApart(OpType op, String argument, List<Tensor> tensors) {
    if (tensors.size() < 2) {
      return;
    }
    List<Range> ranges = new ArrayList<>(tensors.size());
    IdentityHashMap<Object, Integer> arrays = new IdentityHashMap<>(0);
    for (int i = 0; i < tensors.size(); i++) {
      addRange(ranges, true, i, tensors.get(i), firstBytes(tensors.get(i)), arrays);
    }
    ranges.sort(BY_PLACE);
    for (int i = 1; i < ranges.size(); i++) {
      Range before = ranges.get(i - 1);
      Range range = ranges.get(i);
      if (range.memory == before.memory && range.from < before.to) {
        int one = Math.min(before.index, range.index);
        int other = Math.max(before.index, range.index);
        throw bad(
            op,
            name(argument, tensors, one),
            tensors.get(one),
            name(argument, tensors, other),
            tensors.get(other),
            InPlace.NONE);
      }
    }
  }

  /** Returns whether elements of a tensor share memory with each other. */
  static boolean overlapsItself(Tensor tensor) {
    if (tensor.isContiguous()) {
      return false;
    }
    long[] shape = tensor.shape();
    long[] strides = tensor.strides();
    int[] bySteps =
        IntStream.range(0, shape.length)
            .filter(d -> shape[d] > 1)
            .boxed()
            .sorted(Comparator.comparingLong(d -> strides[d]))
            .mapToInt(d -> d)
            .toArray();
    long reach = 0;
    for (int d : bySteps) {
      if (strides[d] <= reach) {
        return strides[d] == 0
            || tensor.numel() > MOST_COMPARED
            || Arrays.stream(offsets(shape, strides)).distinct().count() < tensor.numel();
      }
      reach += (shape[d] - 1) * strides[d];
    }
    return false;
  }

  private static long[] offsets(long[] shape, long[] strides) {
    long[] offsets = {0};
    for (int d = 0; d < shape.length; d++) {
      long[] next = new long[offsets.length * (int) shape[d]];
      for (int i = 0; i < next.length; i++) {
        next[i] = offsets[i % offsets.length] + i / offsets.length * strides[d];
      }
      offsets = next;
    }
    return offsets;
  }

  /** Returns the size in bytes of the leading elements that are adjacent in memory. */
  private static long firstBytes(Tensor tensor) {
    if (tensor.isContiguous()) {
      return tensor.byteSize();
    }
    long[] strides = tensor.strides();
    long count = 1;
    for (int d = strides.length - 1; d >= 0; d--) {
      if (tensor.size(d) > 1 && strides[d] != count) {
        break;
      }
      count *= tensor.size(d);
    }
    return count * tensor.dtype().byteSize();
  }

  private static void addRanges(
      List<Range> ranges,
      boolean areOutputs,
      List<Tensor> tensors,
      IdentityHashMap<Object, Integer> arrays) {
    for (int i = 0; i < tensors.size(); i++) {
      Tensor tensor = tensors.get(i);
      if (isRange(tensor)) {
        addRange(ranges, areOutputs, i, tensor, tensor.byteSize(), arrays);
      }
    }
  }

  private static void addRange(
      List<Range> ranges,
      boolean isOutput,
      int index,
      Tensor tensor,
      long bytes,
      IdentityHashMap<Object, Integer> arrays) {
    MemorySegment segment = tensor.segment();
    Object array = segment.heapBase().orElse(null);
    if (bytes > 0 && (segment.isNative() || array != null)) {
      int memory = array == null ? 0 : arrays.computeIfAbsent(array, a -> arrays.size() + 1);
      long from = segment.address();
      ranges.add(new Range(isOutput, index, memory, from, from + bytes));
    }
  }

  private @Nullable Range clash(
      Range range, Farthest others, InPlace allowed, boolean singleOutput) {
    if (isBad(range, others.first, allowed, singleOutput)) {
      return others.first;
    }
    // A range has at most one partner: if the first one is its partner, the second is not.
    return isBad(range, others.second, allowed, singleOutput) ? others.second : null;
  }

  private boolean isBad(
      Range range, @Nullable Range earlier, InPlace allowed, boolean singleOutput) {
    if (earlier == null || earlier.to <= range.from) {
      return false;
    }
    return switch (allowed) {
      case NONE -> true;
      case OWN_TENSOR -> {
        Range listed = range.isOutput == singleOutput ? earlier : range;
        yield listed.index != rank || range.from != earlier.from || range.to != earlier.to;
      }
      case OWN_PART ->
          range.index != earlier.index
              || !isPart(
                  earlier.from,
                  earlier.size(),
                  range.from,
                  range.size(),
                  rank * Math.min(earlier.size(), range.size()));
    };
  }

  /** Returns whether the smaller of two ranges is this rank's part of the larger one. */
  private static boolean isPart(long from, long size, long otherFrom, long otherSize, long begin) {
    return size >= otherSize ? otherFrom == from + begin : from == otherFrom + begin;
  }

  private static boolean isRange(Tensor tensor) {
    return tensor.isContiguous() && tensor.byteSize() > 0;
  }

  private static boolean sameMemory(MemorySegment one, MemorySegment other) {
    if (one.isNative() || other.isNative()) {
      return one.isNative() && other.isNative();
    }
    Object array = one.heapBase().orElse(null);
    return array != null && array.equals(other.heapBase().orElse(null));
  }

  private IllegalArgumentException bad(
      OpType op,
      List<Tensor> outputs,
      List<Tensor> inputs,
      Range one,
      Range other,
      InPlace allowed) {
    int out = one.isOutput ? one.index : other.index;
    int in = one.isOutput ? other.index : one.index;
    return bad(
        op,
        name("output", outputs, out),
        outputs.get(out),
        name("input", inputs, in),
        inputs.get(in),
        allowed);
  }

  private static String name(String side, List<Tensor> tensors, int index) {
    return tensors.size() == 1 ? side : side + "s[" + index + "]";
  }

  private IllegalArgumentException bad(
      OpType op, String oneName, Tensor one, String otherName, Tensor other, InPlace allowed) {
    String exception =
        switch (allowed) {
          case NONE -> "";
          case OWN_TENSOR -> ", except where one is exactly the other";
          case OWN_PART -> ", except where one is exactly this rank's part of the other";
        };
    return checks.bad(
        op,
        "%s (%s) and %s (%s) must not share memory%s",
        oneName,
        one.describe(),
        otherName,
        other.describe(),
        exception);
  }
}
