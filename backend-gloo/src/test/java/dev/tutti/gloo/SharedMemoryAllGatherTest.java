package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.RemoteMemory;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests gathers of parts so large that ranks read them where they are, and a little smaller. */
@Timeout(60)
class SharedMemoryAllGatherTest {
  private static final int LEAST_READ = 1 << 18;
  private static final int ROUNDS = 3;

  private static int value(int rank, int round, int index) {
    return rank * 1_000_003 + round * 10_007 + index;
  }

  private static void gather(ProcessGroup group, int round, int count, boolean inPlace) {
    Tensor output = Tensor.allocate(DType.INT32, (long) count * group.size());
    Tensor input =
        inPlace
            ? output.narrow(0, (long) count * group.rank(), count)
            : Tensor.allocate(DType.INT32, count);
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
    // What was lent is the caller's again.
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
          }
          return group.toString();
        });
  }

  @Test
  void ranksOfWhichOneLeavesFailWithIt() throws Exception {
    CountDownLatch left = new CountDownLatch(1);
    GlooWorld.run(
        2,
        group -> {
          gather(group, 0, LEAST_READ, false);
          group.setTimeout(Duration.ofSeconds(2));
          if (group.rank() == 1) {
            group.abort("enough");
            left.countDown();
          } else {
            assertThat(left.await(20, TimeUnit.SECONDS)).isTrue();
          }
          assertThatThrownBy(() -> gather(group, 1, LEAST_READ, false))
              .isInstanceOf(CollectiveException.class);
          return group.rank();
        });
  }
}
