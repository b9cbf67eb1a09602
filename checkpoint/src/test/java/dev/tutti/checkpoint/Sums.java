package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.Arrays;
import java.util.List;

/**
 * Sums whose result depends on which steps were done, how often and in which order, but not on how
 * many ranks do them: each step adds the items of a batch, which the ranks divide.
 */
final class Sums {
  private static final int BATCH = 12;
  private static final int LENGTH = 5;
  private static final long FACTOR = 0x9E3779B97F4A7C15L;

  private final Tensor first = Tensor.of(new long[LENGTH]);
  private final Tensor second = Tensor.of(new long[LENGTH]);
  private String text = "";

  /** Returns what all is after some steps. */
  static Sums after(long steps) {
    Sums all = new Sums();
    for (long step = 0; step < steps; step++) {
      long sum = 0;
      for (int item = 0; item < BATCH; item++) {
        sum += item(step, item);
      }
      all.add(all.first, step, sum);
      all.add(all.second, step, sum);
      all.text = String.valueOf(step);
    }
    return all;
  }

  Contents contents() {
    return Contents.of()
        .copies("sums", List.of("first", "second"), List.of(first, second))
        .value("last", () -> text, all -> text = all.getFirst());
  }

  /** Does a step, in the middle of which ranks may fail. */
  void step(ProcessGroup group, long step) {
    add(first, step, batch(group, step));
    add(second, step, batch(group, step));
    text = String.valueOf(step);
  }

  private static long batch(ProcessGroup group, long step) {
    long own = 0;
    for (int item = group.rank(); item < BATCH; item += group.size()) {
      own += item(step, item);
    }
    Tensor sum = Tensor.of(own);
    group.allReduce(sum);
    return sum.getLong(0);
  }

  private void add(Tensor sums, long step, long sum) {
    int index = (int) (step % LENGTH);
    sums.setLong(index, sums.getLong(index) * 31 + sum);
  }

  private static long item(long step, int item) {
    long mixed = (step * BATCH + item + 1) * FACTOR;
    return mixed ^ (mixed >>> 29);
  }

  @Override
  public String toString() {
    return Arrays.toString(first.toLongArray()) + Arrays.toString(second.toLongArray()) + text;
  }
}
