package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.BitSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Explores how collectives of several groups, in streams of their own, occupy multiprocessors.
 * Block b of a kernel stays until block b of all ranks has begun, and blocks of a kernel begin in
 * order. So a state is the number of blocks that have begun, for each rank and group. A kernel may
 * be launched in parts of some blocks, each of which begins once the one before has ended.
 */
class MultiprocessorsTest {
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Model(int ranks, int groups, int lanes, int multiprocessors, int[][] parts) {
    Model(int ranks, int groups, int lanes, int multiprocessors) {
      this(ranks, groups, lanes, multiprocessors, new int[ranks][groups]);
      for (int[] of : parts) {
        Arrays.fill(of, lanes);
      }
    }

    int digits() {
      return ranks * groups;
    }

    int begun(long state, int rank, int group) {
      return (int) (state / power(rank * groups + group) % (lanes + 1));
    }

    long power(int digit) {
      long power = 1;
      for (int i = 0; i < digit; i++) {
        power *= lanes + 1;
      }
      return power;
    }

    private int least(long state, int group) {
      int least = lanes;
      for (int rank = 0; rank < ranks; rank++) {
        least = Math.min(least, begun(state, rank, group));
      }
      return least;
    }

    private boolean hasRoom(long state, int rank) {
      int occupied = 0;
      for (int group = 0; group < groups; group++) {
        occupied += begun(state, rank, group) - least(state, group);
      }
      return occupied < multiprocessors;
    }

    private boolean canBegin(long state, int rank, int group) {
      int begun = begun(state, rank, group);
      int part = parts[rank][group];
      return begun < lanes && least(state, group) >= begun / part * part;
    }

    /** Returns whether ranks can come to a state from which no block can begin or end. */
    boolean canStop() {
      BitSet seen = new BitSet();
      ArrayDeque<Long> open = new ArrayDeque<>();
      long last = power(digits()) - 1;
      open.add(0L);
      while (!open.isEmpty()) {
        long state = open.removeLast();
        boolean goesOn = state == last;
        for (int rank = 0; rank < ranks; rank++) {
          boolean hasRoom = hasRoom(state, rank);
          for (int group = 0; group < groups; group++) {
            if (hasRoom && canBegin(state, rank, group)) {
              goesOn = true;
              long next = state + power(rank * groups + group);
              if (!seen.get(Math.toIntExact(next))) {
                seen.set(Math.toIntExact(next));
                open.add(next);
              }
            }
          }
        }
        if (!goesOn) {
          return true;
        }
      }
      return false;
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 2, 5, 6", "3, 2, 3, 4", "4, 2, 2, 3", "2, 3, 3, 7", "3, 3, 2, 5", "2, 4, 2, 7"})
  void allGroupsGoOnIfTheLanesOfAllButOneLeaveRoom(
      int ranks, int groups, int lanes, int multiprocessors) {
    assertThat((groups - 1) * lanes).isLessThan(multiprocessors);
    assertThat(new Model(ranks, groups, lanes, multiprocessors).canStop()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"2, 2, 3, 3", "3, 3, 3, 6", "3, 3, 2, 4"})
  void groupsWaitForEachOtherIfTheyTakeAll(int ranks, int groups, int lanes, int multiprocessors) {
    assertThat(new Model(ranks, groups, lanes, multiprocessors).canStop()).isTrue();
  }

  /** Each rank launches in an order of its own; what is shared goes to those that come first. */
  @ParameterizedTest
  @CsvSource({"3, 3, 2, 4", "2, 4, 2, 5", "2, 4, 3, 5"})
  void allGroupsGoOnIfEachKeepsABlock(int ranks, int groups, int lanes, int multiprocessors) {
    for (long orders = 0; orders < Math.pow(groups, ranks); orders++) {
      int[][] parts = new int[ranks][groups];
      long rest = orders;
      for (int[] of : parts) {
        int shared = multiprocessors - groups;
        for (int i = 0; i < groups; i++) {
          int part = Math.min(lanes, 1 + shared);
          shared -= part - 1;
          of[(int) (rest + i) % groups] = part;
        }
        rest /= groups;
      }
      assertThat(new Model(ranks, groups, lanes, multiprocessors, parts).canStop()).isFalse();
    }
  }

  @Test
  void twoRanksWithThreeGroupsNeedLess() {
    assertThat(new Model(2, 3, 3, 4).canStop()).isFalse();
  }
}
