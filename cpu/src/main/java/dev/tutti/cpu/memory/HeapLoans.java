package dev.tutti.cpu.memory;

import java.util.ArrayList;
import java.util.List;

/**
 * Holds back what is freed while others may read it: until all loans that were open then have
 * ended. Any thread may use it.
 *
 * @param <T> what is freed
 */
final class HeapLoans<T> {
  /*
   * Loans are counted in two generations, so that what is freed comes back although there is always
   * some loan open (as in sleepable RCU: McKenney, "Sleepable Read-Copy Update", 2006). New ones go to
   * the young generation. What is freed waits until the old generation is empty. Then the young one
   * becomes old and takes no more loans, and when it too is empty nobody is left who could read.
   */
  private final int[] open = new int[2];
  private int young;
  private List<T> waiting = new ArrayList<>();
  private List<T> draining = new ArrayList<>();

  /**
   * Begins a loan.
   *
   * @return its generation, to be handed to {@link #end}
   */
  synchronized int begin() {
    open[young]++;
    return young;
  }

  /**
   * Ends a loan.
   *
   * @param generation what its beginning returned
   * @return what nobody can read any more
   */
  synchronized List<T> end(int generation) {
    open[generation]--;
    return open[generation] > 0 ? List.of() : advance();
  }

  /**
   * Takes what was freed.
   *
   * @param freed what
   * @return what nobody can read any more, maybe with this
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
