package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests exchanges whose parts are so large that ranks read them in place. */
@Timeout(300)
class SharedMemoryAllToAllTest {
  private static final int ROUNDS = 4;

  private static int count(int from, int to, int round, int unit) {
    return (from * 5 + to * 3 + round) % 4 * unit;
  }

  private static int value(int from, int to, int round, int index) {
    return from * 1_000_003 + to * 10_007 + round * 101 + index;
  }

  private static Tensor filled(int from, int to, int round, int unit) {
    int[] values = new int[count(from, to, round, unit)];
    for (int i = 0; i < values.length; i++) {
      values[i] = value(from, to, round, i);
    }
    // Not in memory that other ranks can map.
    MemorySegment memory =
        Arena.ofAuto().allocate(4L * values.length, 4).copyFrom(MemorySegment.ofArray(values));
    return Tensor.wrap(memory, DType.INT32, values.length);
  }

  private static void exchange(ProcessGroup group, int round, int unit) {
    int rank = group.rank();
    List<Tensor> inputs = new ArrayList<>();
    List<Tensor> outputs = new ArrayList<>();
    for (int peer = 0; peer < group.size(); peer++) {
      inputs.add(filled(rank, peer, round, unit));
      outputs.add(Tensor.allocate(DType.INT32, count(peer, rank, round, unit)));
    }
    group.allToAll(outputs, inputs);
    for (int peer = 0; peer < group.size(); peer++) {
      int[] received = outputs.get(peer).segment().toArray(ValueLayout.JAVA_INT);
      assertThat(received).hasSize(count(peer, rank, round, unit));
      for (int i = 0; i < received.length; i++) {
        if (received[i] != value(peer, rank, round, i)) {
          throw new AssertionError("element " + i + " of rank " + peer + " is " + received[i]);
        }
      }
      // The lent memory belongs to the caller again.
      inputs.get(peer).segment().fill((byte) -1);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 300000, true", "3, 70000, true", "4, 40000, true", "3, 70000, false"})
  void partsOfAnySizeArrive(int ranks, int unit, String reads) throws Exception {
    GlooWorld.run(
        ranks,
        GlooWorld.settings(RemoteMemory.SETTING.name(), reads),
        group -> {
          for (int round = 0; round < ROUNDS; round++) {
            exchange(group, round, unit);
            exchange(group, round, 1000);
          }
          return group.toString();
        });
  }

  @Test
  void ranksOfWhichOneLeavesFailWithIt() throws Exception {
    GlooWorld.failsWhenOneAborts(group -> exchange(group, 0, 100_000));
  }
}
