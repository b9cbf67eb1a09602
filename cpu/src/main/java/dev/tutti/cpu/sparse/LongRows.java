package dev.tutti.cpu.sparse;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.reduce.ElementBlock;
import dev.tutti.cpu.reduce.ElementBlocks;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Adds rows in place, a block of each at a time; a row that is alone at its place is copied. */
final class LongRows {
  private final ElementBlock block;
  private final SparseKeys keys;
  private final MemorySegment[] values;
  private final long rowBytes;

  LongRows(DType real, List<Tensor> tensors, SparseKeys keys, long rowBytes) {
    block = ElementBlocks.of(ReduceOp.Kind.SUM, real);
    this.keys = keys;
    values = tensors.stream().map(each -> each.values().segment()).toArray(MemorySegment[]::new);
    this.rowBytes = rowBytes;
  }

  /** Adds the rows, and writes the sums as one row for each place. */
  void sum(SparsePlaces places, MemorySegment sums) {
    int[] order = places.order();
    int[] starts = places.starts();
    int place = 0;
    while (place < places.count()) {
      int from = starts[place];
      int to = starts[place + 1];
      if (to - from > 1) {
        add(order, from, to, sums, place * rowBytes);
        place++;
      } else {
        int tensor = keys.tensorOf(order[from]);
        int run = run(places, place, keys.start(tensor + 1));
        long offset = (order[from] - keys.start(tensor)) * rowBytes;
        MemorySegment.copy(values[tensor], offset, sums, place * rowBytes, run * rowBytes);
        place += run;
      }
    }
  }

  /**
   * Counts consecutive places that have one row each, each row directly following that of the
   * previous place.
   */
  private static int run(SparsePlaces places, int first, int end) {
    int[] order = places.order();
    int[] starts = places.starts();
    int entry = order[starts[first]] + 1;
    int place = first + 1;
    while (place < places.count()
        && starts[place + 1] - starts[place] == 1
        && order[starts[place]] == entry
        && entry < end) {
      entry++;
      place++;
    }
    return place - first;
  }

  private void add(int[] order, int from, int to, MemorySegment sums, long offset) {
    int step = block.step(rowBytes);
    for (long done = 0; done < rowBytes; done += step) {
      int n = (int) Math.min(step, rowBytes - done);
      int first = keys.tensorOf(order[from]);
      int second = keys.tensorOf(order[from + 1]);
      block.loadCombined(
          ReduceOp.Kind.SUM,
          values[first],
          offsetOf(order[from], first) + done,
          values[second],
          offsetOf(order[from + 1], second) + done,
          n);
      for (int i = from + 2; i < to; i++) {
        int tensor = keys.tensorOf(order[i]);
        block.combine(ReduceOp.Kind.SUM, values[tensor], offsetOf(order[i], tensor) + done, n);
      }
      block.store(sums, offset + done, n);
    }
  }

  private long offsetOf(int entry, int tensor) {
    return (entry - keys.start(tensor)) * rowBytes;
  }
}
