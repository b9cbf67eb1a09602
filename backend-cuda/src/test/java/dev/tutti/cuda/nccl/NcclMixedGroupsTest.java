package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.nccl.MixedRanks.LIMIT;
import static dev.tutti.cuda.nccl.MixedRanks.PREFIX;
import static dev.tutti.cuda.nccl.MixedRanks.end;
import static dev.tutti.cuda.nccl.MixedRanks.floats;
import static dev.tutti.cuda.nccl.MixedRanks.read;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.Until;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests subgroups of groups with PyTorch ranks on a fake NCCL. */
@Timeout(300)
class NcclMixedGroupsTest {
  @AutoClose private final MixedRanks ranks = new MixedRanks(3);

  @Test
  void aSubgroupIsMadeByASplit() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            0,
            3,
            rank -> {
              Communicator main = rank.main();
              Communicator part =
                  main.split(
                      "part", NcclSubgroups.color(List.of(0, 2)), 0, ForeignRank.soon(), () -> {});
              Tensor tensor = rank.floats(1);
              rank.sum(part, tensor);
              assertThat(rank.read(tensor)).containsExactly(4);
              rank.receive(part, 1, tensor);
              assertThat(rank.read(tensor)).containsExactly(9);
              assertThat(main.split("none", NcclCalls.NO_COLOR, 0, ForeignRank.soon(), () -> {}))
                  .isNull();
              rank.sum(main, tensor);
              assertThat(rank.read(tensor)).containsExactly(12);
              part.close();
              main.close();
            });
    Future<?> outside =
        ranks.own(
            1,
            3,
            (group, device) -> {
              assertThat(group.subgroup(List.of(0, 2))).isEmpty();
              ProcessGroup pair = group.subgroup(List.of(1, 2)).orElseThrow();
              pair.send(floats(device, 8), 1);
              Tensor sum = floats(device, 1);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(12);
            });
    Future<?> member =
        ranks.own(
            2,
            3,
            (group, device) -> {
              ProcessGroup part = group.subgroup(List.of(0, 2)).orElseThrow();
              Tensor tensor = floats(device, 3);
              part.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(4);
              part.send(floats(device, 9), 0);
              assertThatThrownBy(() -> part.subgroup(List.of(0)))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("only of the group of all ranks");
              ProcessGroup pair = group.subgroup(List.of(1, 2)).orElseThrow();
              pair.recv(tensor, 0);
              assertThat(read(device, tensor)).containsExactly(8);
              Tensor sum = floats(device, 2);
              group.allReduce(sum);
              assertThat(read(device, sum)).containsExactly(12);
            });
    end(outside, member, foreign);
    byte[] id = ranks.store.get(PREFIX + "0", LIMIT);
    int color = NcclSubgroups.color(List.of(0, 2));
    assertThat(ranks.nccl.colors(id, 0)).isEqualTo(Map.of(0, color, 1, -1, 2, color));
    int other = NcclSubgroups.color(List.of(1, 2));
    assertThat(ranks.nccl.colors(id, 1)).isEqualTo(Map.of(0, -1, 1, other, 2, other));
  }

  @Test
  void aSubgroupThatARankDoesNotComeToFailsTheGroup() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(named, 0, 2);
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              group.setTimeout(Duration.ofSeconds(2));
              assertThatThrownBy(() -> group.subgroup(List.of(0)))
                  .isInstanceOf(TuttiException.class)
                  .hasStackTraceContaining("not all ranks came to split the NCCL communicator")
                  .hasStackTraceContaining("set TUTTI_NCCL_LAZY=1 for all ranks of Tutti");
              assertThatThrownBy(() -> group.barrier()).isInstanceOf(TuttiException.class);
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void aLazySubgroupMeetsUnderItsOwnKeys() throws Exception {
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            "0//1//cuda//",
            rank -> {
              Communicator pair = rank.pair(1);
              rank.send(pair, 1, rank.floats(3));
              Communicator main = rank.main();
              rank.sum(main, rank.floats(1));
              pair.close();
              main.close();
            });
    Future<?> own =
        ranks.lazy(
            1,
            2,
            (group, device) -> {
              ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow();
              Tensor tensor = floats(device, 0);
              part.recv(tensor, 0);
              part.allReduce(tensor);
              assertThat(read(device, tensor)).containsExactly(4);
            });
    end(own, foreign);
  }

  @Test
  void colorsAreThoseOfPython() {
    assertThat(NcclSubgroups.color(List.of(0, 1))).isEqualTo(2130503744);
    assertThat(NcclSubgroups.color(List.of(1, 2, 3))).isEqualTo(1729875179);
    assertThat(NcclSubgroups.color(List.of(0, 1, 2, 3, 4, 5, 6, 7))).isEqualTo(1266629538);
    assertThat(NcclSubgroups.color(List.of(5))).isEqualTo(14136057);
  }

  /** Makes a split wait for a collective that can no longer end. */
  @Test
  void whatNcclSaysIsHeardWhileASplitWaitsForOperations() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(over, 0, 2);
    Future<?> own =
        ranks.own(
            1,
            2,
            LIMIT.plus(LIMIT),
            (group, device) -> {
              Work _ = group.allReduce(floats(device, 1), ReduceOp.SUM, CallOptions.ASYNC);
              Thread caller = Thread.currentThread();
              Thread failing =
                  Thread.ofPlatform()
                      .start(
                          () -> {
                            Until.holds("a split that waits", () -> isIn(caller, "whenIdle"));
                            ranks.nccl.failAll(6);
                          });
              assertThatThrownBy(() -> group.subgroup(List.of(0, 1)))
                  .hasStackTraceContaining("played failure");
              failing.join();
              over.countDown();
            });
    end(own, foreign);
  }

  private static boolean isIn(Thread thread, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals(method));
  }
}
