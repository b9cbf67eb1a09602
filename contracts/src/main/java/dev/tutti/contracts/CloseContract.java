package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.CollectiveException;
import dev.tutti.GroupClosedException;
import dev.tutti.GroupOptions;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Tests of close: once or twice, idle or with pending operations, alone or while others wait. */
public interface CloseContract extends GroupContract {
  /** Refuses everything after close except queries, and closes twice without complaint. */
  @ContractTest
  default void aClosedGroupRefusesOperations(ContractWorld world) throws Exception {
    world.run(
        member -> {
          member.assertUsable();
          ProcessGroup group = member.group();
          group.close();
          group.close();
          assertThat(group.isClosed()).isTrue();
          assertThat(group.rank()).isEqualTo(member.rank());
          assertThat(group.size()).isEqualTo(world.size());
          assertThat(group.name()).isEqualTo("0");
          List<Refusals.Call> calls =
              new ArrayList<>(
                  List.of(
                      () -> group.monitoredBarrier(Duration.ofSeconds(1), MissingRanks.FIRST),
                      () -> group.batch(),
                      () -> group.split(0, 0),
                      () -> group.subgroup(List.of(0))));
          GoodCalls good = new GoodCalls(member);
          for (OpType op : Capabilities.ofVersion1().operations()) {
            if (member.capabilities().has(op)
                && op != OpType.MONITORED_BARRIER
                && (member.size() > 1 || !op.isPointToPoint())) {
              calls.add(good.of(op));
            }
          }
          for (Refusals.Call call : calls) {
            assertThatThrownBy(call::run)
                .isInstanceOf(GroupClosedException.class)
                .hasMessageContaining("closed")
                .hasMessageContaining("rank " + member.rank());
          }
          group.abort("too late");
          group.close();
        });
  }

  /** Lets a close wait for slow ranks, whatever the subject says. */
  private static GroupOptions patient(GroupOptions options) {
    return options.withSetting("TUTTI_CLOSE_TIMEOUT", "60s");
  }

  /** Waits for the operations that this rank still has in flight. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true)
  default void closeWaitsForPendingOperations(ContractWorld world) throws Exception {
    world.run(
        CloseContract::patient,
        member -> {
          TestTensor tensor = member.floats(member.rank() + 1);
          List<Work> works = new ArrayList<>();
          for (int i = 0; i < 5; i++) {
            works.add(member.startSum(tensor.view()));
          }
          member.group().close();
          assertThat(works).allMatch(Work::isSuccess);
          double n = member.size();
          tensor.assertValues("sum after close", n * (n + 1) / 2 * n * n * n * n);
        });
  }

  /** Fails, after the close timeout, an operation that the peers never joined. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void closeFailsWhatNeverEnds(ContractWorld world) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    world.run(
        options -> options.withSetting("TUTTI_CLOSE_TIMEOUT", "200ms"),
        member -> {
          if (member.rank() != 0) {
            Waiting.open(ended);
            return;
          }
          Work collective = member.startSum(member.floats(1).view());
          Work recv =
              member.capabilities().has(OpType.RECV)
                  ? member.group().recv(member.floats(1).view(), 1, 0, CallOptions.ASYNC)
                  : collective;
          long start = System.nanoTime();
          member.group().close();
          assertThat(Duration.ofNanos(System.nanoTime() - start))
              .isGreaterThan(Duration.ofMillis(150));
          for (Work work : new Work[] {collective, recv}) {
            assertThat(work.isCompleted()).isTrue();
            assertThat(work.isSuccess()).isFalse();
            CollectiveException failure =
                CaughtFailures.expect(member, CaughtFailures.SLACK, work::await);
            assertThat(failure).hasMessageContaining("close");
          }
          ended.countDown();
        });
  }

  /** Lets a rank close at once while others are still joining; they notice it later. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aRankMayCloseAtOnce(ContractWorld world) throws Exception {
    int rounds = world.isLarge() ? 2 : 8;
    for (int round = 0; round < rounds; round++) {
      int leaver = round % world.size();
      world.run(closeAtOnce(world, leaver));
    }
  }

  private static ContractWorld.MemberBody closeAtOnce(ContractWorld world, int leaver) {
    CountDownLatch joined = new CountDownLatch(world.size() - 1);
    return member -> {
      if (member.rank() == leaver) {
        member.group().close();
        return;
      }
      joined.countDown();
      Waiting.open(joined);
      CollectiveException failure =
          CaughtFailures.expect(member, CaughtFailures.SLACK, member::awaitSum);
      assertThat(failure.failedRank()).as("%s", failure).hasValue(leaver);
    };
  }

  /** Fails the ranks that wait for a rank that closed, long before their deadline. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void ranksThatWaitForAClosedOneFail(ContractWorld world) throws Exception {
    world.run(closeWhileOthersWait(world.size() - 1));
  }

  private static ContractWorld.MemberBody closeWhileOthersWait(int leaver) {
    CountDownLatch ready = new CountDownLatch(leaver);
    CountDownLatch failed = new CountDownLatch(leaver);
    return member -> {
      member.assertUsable();
      if (member.rank() == leaver) {
        Waiting.open(ready);
        member.group().close();
        Waiting.open(failed);
      } else {
        ready.countDown();
        CollectiveException failure =
            CaughtFailures.expect(member, CaughtFailures.SLACK, member::awaitSum);
        assertThat(failure.failedRank()).as("%s", failure).hasValue(leaver);
        failed.countDown();
      }
    };
  }

  /** Lets each rank close as soon as its own part is done, without harm to the slower ones. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aQuickCloseHarmsNobody(ContractWorld world) throws Exception {
    int rounds = world.isLarge() ? 3 : 20;
    for (int round = 0; round < rounds; round++) {
      int slow = round % world.size();
      world.run(
          CloseContract::patient,
          member -> {
            if (member.rank() == slow) {
              for (int i = 0; i < 1000; i++) {
                Thread.onSpinWait();
              }
            }
            TestTensor tensor = member.floats(1, 2, 3);
            member.group().allReduce(tensor.view());
            member.group().close();
            double n = member.size();
            tensor.assertValues("last sum", n, 2 * n, 3 * n);
          });
    }
  }
}
