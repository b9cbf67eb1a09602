package dev.tutti.cpu.sparse;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * The keys of all entries of sparse tensors, one tensor after another: the key of an entry is the
 * number of its place among all places in row-major order.
 */
public final class SparseKeys {
  private static final int MAX_COUNT = Integer.MAX_VALUE - 8;

  /**
   * How many keys are built from all dimensions before the next ones, so that they stay in the
   * cache.
   */
  private static final int BLOCK = 1024;

  private final long[] keys;
  private final int[] starts;
  private final long[] sizes;
  private final boolean[] ascending;
  private boolean allAscending = true;
  private long last = -1;
  private long max = -1;

  private SparseKeys(int[] starts, long[] sizes) {
    this.starts = starts;
    this.sizes = sizes;
    keys = new long[starts[starts.length - 1]];
    ascending = new boolean[starts.length - 1];
  }

  /**
   * Reads the indices of tensors.
   *
   * @throws IllegalArgumentException if the tensors do not match, or are too large
   * @throws IndexOutOfBoundsException if an index is outside the shape
   */
  public static SparseKeys of(List<Tensor> tensors) {
    Tensor model = tensors.get(0);
    int dims = (int) model.indices().size(0);
    int[] starts = new int[tensors.size() + 1];
    for (int t = 0; t < tensors.size(); t++) {
      Tensor tensor = tensors.get(t);
      check(model, tensor);
      long end = starts[t] + tensor.indices().size(1);
      if (end > MAX_COUNT) {
        throw new IllegalArgumentException(
            "sparse tensors of at most "
                + MAX_COUNT
                + " entries in total can be added, not of "
                + end);
      }
      starts[t + 1] = (int) end;
    }
    SparseKeys all = new SparseKeys(starts, Arrays.copyOf(model.shape(), dims));
    if (all.count() > 0) {
      all.checkPlaces(model);
      long[] block = new long[BLOCK];
      for (int t = 0; t < tensors.size(); t++) {
        all.read(tensors.get(t), t, block);
      }
    }
    return all;
  }

  private static void check(Tensor model, Tensor tensor) {
    if (tensor.indices().size(0) != model.indices().size(0)) {
      throw new IllegalArgumentException(
          "sparse dimensions do not match: "
              + model.indices().size(0)
              + " and "
              + tensor.indices().size(0));
    }
    if (!tensor.sameShape(model) || tensor.dtype() != model.dtype()) {
      throw new IllegalArgumentException(
          "sparse tensors do not match: " + model.describe() + " and " + tensor.describe());
    }
    if (!tensor.device().isCpu()) {
      throw new IllegalStateException("a sum needs host tensors, not " + tensor.describe());
    }
  }

  /**
   * Checks the number of places: a tensor never has more elements than a long can count, but it has
   * none at all if its rows are empty.
   */
  private void checkPlaces(Tensor model) {
    long places = 1;
    for (long size : sizes) {
      if (Math.multiplyHigh(places, size) != 0 || places * size < 0) {
        throw new IllegalArgumentException(
            "sparse tensors with more than 2^63 - 1 positions cannot be added: "
                + model.describe());
      }
      places *= size;
    }
  }

  private void read(Tensor tensor, int number, long[] block) {
    MemorySegment memory = tensor.indices().segment();
    int start = starts[number];
    int count = starts[number + 1] - start;
    long outside = 0;
    long falls = 0;
    for (int done = 0; done < count; done += BLOCK) {
      int n = Math.min(BLOCK, count - done);
      for (int d = 0; d < sizes.length; d++) {
        long offset = 8 * (d * (long) count + done);
        MemorySegment.copy(memory, JAVA_LONG_UNALIGNED, offset, block, 0, n);
        outside |= append(keys, start + done, block, n, sizes[d]);
      }
      falls |= falls(start + done, n, done > 0);
    }
    if (outside < 0) {
      throw outside(tensor);
    }
    ascending[number] = falls >= 0;
    allAscending &= ascending[number];
  }

  /**
   * Appends the index in one more dimension to keys; returns a negative number if one is out of
   * bounds.
   */
  private static long append(long[] keys, int from, long[] indices, int count, long size) {
    long outside = 0;
    for (int i = 0; i < count; i++) {
      long index = indices[i];
      outside |= index | (size - 1 - index);
      keys[from + i] = keys[from + i] * size + index;
    }
    return outside;
  }

  /**
   * Returns a negative number if keys do not ascend within a tensor; also checks that a tensor
   * begins above the one before it.
   */
  private long falls(int from, int count, boolean continues) {
    long first = keys[from] - last - 1;
    if (!continues) {
      allAscending &= first >= 0;
    }
    long falls = continues ? first : 0;
    long most = Math.max(max, keys[from]);
    for (int i = from + 1; i < from + count; i++) {
      falls |= keys[i] - keys[i - 1] - 1;
      most = Math.max(most, keys[i]);
    }
    last = keys[from + count - 1];
    max = most;
    return falls;
  }

  private IndexOutOfBoundsException outside(Tensor tensor) {
    Tensor indices = tensor.indices();
    for (long entry = 0; entry < indices.size(1); entry++) {
      for (int d = 0; d < sizes.length; d++) {
        long index = indices.getLong(d * indices.size(1) + entry);
        if (index < 0 || index >= sizes[d]) {
          return new IndexOutOfBoundsException(
              "index " + index + " is outside dimension " + d + " of " + tensor.describe());
        }
      }
    }
    return new IndexOutOfBoundsException("an index is outside " + tensor.describe());
  }

  /** Returns the number of entries. */
  public int count() {
    return keys.length;
  }

  /** Returns the number of tensors. */
  int tensors() {
    return ascending.length;
  }

  /**
   * Returns the first entry of a tensor; for the tensor number after the last, returns the number
   * of entries.
   */
  public int start(int tensor) {
    return starts[tensor];
  }

  /** Returns the tensor of an entry. */
  int tensorOf(int entry) {
    int low = 0;
    int high = ascending.length;
    while (high - low > 1) {
      int middle = (low + high) >>> 1;
      if (starts[middle] <= entry) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** Returns the key array itself, for callers that sort it. */
  long[] keys() {
    return keys;
  }

  /** Returns the largest key; -1 if there is none. */
  long max() {
    return max;
  }

  /** Returns whether each key is greater than the previous one, across tensors as well. */
  public boolean isAscending() {
    return allAscending;
  }

  /** Returns whether, in every tensor, each key is greater than the previous one. */
  boolean isAscendingInEach() {
    for (boolean each : ascending) {
      if (!each) {
        return false;
      }
    }
    return true;
  }
}
