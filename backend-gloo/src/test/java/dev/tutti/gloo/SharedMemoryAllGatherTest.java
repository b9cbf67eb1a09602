package dev.tutti.gloo;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.spi.Staging;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests gathers whose parts are so large that ranks read them in place, and slightly smaller ones.
 */
@Timeout(300)
class SharedMemoryAllGatherTest {
  private static final int LEAST_READ = 1 << 18;
  private static final int ROUNDS = 3;

  private static int value(int rank, int round, int index) {
    return rank * 1_000_003 + round * 10_007 + index;
  }

  /** Returns memory that other ranks cannot map. */
  private static Tensor elsewhere(long count) {
    return Tensor.wrap(Arena.ofAuto().allocate(4 * count, 4), DType.INT32, count);
  }

  private static void gather(ProcessGroup group, int round, int count, boolean inPlace) {
    Tensor output = elsewhere((long) count * group.size());
    Tensor input =
        inPlace ? output.narrow(0, (long) count * group.rank(), count) : elsewhere(count);
    for (int i = 0; i < count; i++) {
      input.segment().setAtIndex(ValueLayout.JAVA_INT, i, value(group.rank(), round, i));
    }
    group.allGatherInto(output, input);
    for (int peer = 0; peer < group.size(); peer++) {
      for (int i = 0; i < count; i++) {
        int received = output.segment().getAtIndex(ValueLayout.JAVA_INT, (long) peer * count + i);
        if (received != value(peer, round, i)) {
          throw new AssertionError("element " + i + " of rank " + peer + " is " + received);
        }
      }
    }
    // The lent memory belongs to the caller again.
    input.segment().fill((byte) -1);
  }

  /** Gathers in place about as many elements of each rank, but none of the last of three. */
  private static void gatherUnequal(ProcessGroup group, int round) {
    int size = group.size();
    long[] splits = new long[size];
    Arrays.setAll(splits, rank -> rank == 2 ? 0 : LEAST_READ + 1001L * rank);
    Tensor output = elsewhere(Arrays.stream(splits).sum());
    List<Tensor> parts = Staging.splitRows(output, splits);
    Tensor input = parts.get(group.rank());
    for (int i = 0; i < input.numel(); i++) {
      input.segment().setAtIndex(ValueLayout.JAVA_INT, i, value(group.rank(), round, i));
    }
    group.allGatherInto(output, input, splits);
    for (int peer = 0; peer < size; peer++) {
      for (int i = 0; i < splits[peer]; i++) {
        int received = parts.get(peer).segment().getAtIndex(ValueLayout.JAVA_INT, i);
        if (received != value(peer, round, i)) {
          throw new AssertionError("element " + i + " of rank " + peer + " is " + received);
        }
      }
    }
    input.segment().fill((byte) -1);
  }

  @ParameterizedTest
  @CsvSource({"2, true", "3, true", "4, true", "3, false"})
  void partsArrive(int ranks, String reads) throws Exception {
    GlooWorld.run(
        ranks,
        GlooWorld.settings(RemoteMemory.SETTING.name(), reads),
        group -> {
          for (int round = 0; round < ROUNDS; round++) {
            gather(group, round, LEAST_READ, false);
            gather(group, round, LEAST_READ - 1, true);
            gather(group, round, LEAST_READ + 1, true);
            gather(group, round, 3 * LEAST_READ + 5, false);
            gatherUnequal(group, round);
          }
          return group.toString();
        });
  }

  @Test
  void ranksOfWhichOneLeavesFailWithIt() throws Exception {
    GlooWorld.failsWhenOneAborts(group -> gather(group, 0, LEAST_READ, false));
  }
}
