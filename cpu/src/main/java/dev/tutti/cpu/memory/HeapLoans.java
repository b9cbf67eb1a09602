package dev.tutti.cpu.memory;

import java.util.ArrayList;
import java.util.List;

/**
 * Holds back freed memory while others may read it, until all loans that were open when it was
 * freed have ended. Any thread may call its methods.
 *
 * @param <T> the type of what is freed
 */
final class HeapLoans<T> {
  /*
   * Loans are counted in two generations, so that freed memory comes back although there is always
   * some loan open (as in sleepable RCU: McKenney, "Sleepable Read-Copy Update", 2006). New loans
   * go to the young generation. Freed memory waits until the old generation is empty. Then the
   * young generation becomes old and accepts no more loans, and when it too is empty, no reader is
   * left.
   */
  private final int[] open = new int[2];
  private int young;
  private List<T> waiting = new ArrayList<>();
  private List<T> draining = new ArrayList<>();

  /**
   * Begins a loan.
   *
   * @return its generation, to be passed to {@link #end}
   */
  synchronized int begin() {
    open[young]++;
    return young;
  }

  /**
   * Ends a loan.
   *
   * @param generation the generation that its beginning returned
   * @return what can no longer be read
   */
  synchronized List<T> end(int generation) {
    open[generation]--;
    return open[generation] > 0 ? List.of() : advance();
  }

  /**
   * Accepts what was freed.
   *
   * @param freed what was freed
   * @return what can no longer be read, which may include this
   */
  synchronized List<T> free(T freed) {
    waiting.add(freed);
    return advance();
  }

  private List<T> advance() {
    List<T> unread = List.of();
    while (open[1 - young] == 0 && (!draining.isEmpty() || !waiting.isEmpty())) {
      if (!draining.isEmpty()) {
        unread = unread.isEmpty() ? new ArrayList<>() : unread;
        unread.addAll(draining);
        draining.clear();
      }
      if (!waiting.isEmpty()) {
        List<T> next = waiting;
        waiting = draining;
        draining = next;
        young = 1 - young;
      }
    }
    return unread;
  }
}
