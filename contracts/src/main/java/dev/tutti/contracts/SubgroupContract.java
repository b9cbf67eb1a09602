package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Capabilities;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.SubgroupOptions;
import dev.tutti.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Tests of split and subgroup: ranks, order, independence, nesting and lifetime. */
public interface SubgroupContract extends GroupContract {
  /** Splits by parity, the higher ranks first. */
  @ContractTest(movesData = true)
  default void splitOrdersByKeyThenRank(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int color = member.rank() % 2;
          ProcessGroup half = member.group().split(color, -member.rank()).orElseThrow();
          List<Integer> expected =
              member.ranks().reversed().stream().filter(rank -> rank % 2 == color).toList();
          assertThat(half.globalRanks()).isEqualTo(expected);
          assertThat(half.size()).isEqualTo(expected.size());
          assertThat(half.rank()).isEqualTo(expected.indexOf(member.rank()));
          member.in(half).assertUsable();
          ProcessGroup same = member.group().split(0, 5).orElseThrow();
          assertThat(same.globalRanks()).isEqualTo(member.group().globalRanks());
          member.in(same).assertUsable();
          member.assertUsable();
        });
  }

  /** Uses the group's own ranks in a group whose order differs from that of its parent. */
  @ContractTest(movesData = true, minSize = 2)
  default void operationsGoByTheRanksOfTheGroup(ContractWorld world) throws Exception {
    world.run(
        member -> {
          Member own = member.in(member.group().split(0, -member.rank()).orElseThrow());
          assertThat(own.rank()).isEqualTo(member.size() - 1 - member.rank());
          Capabilities capabilities = member.capabilities();
          if (capabilities.has(OpType.BROADCAST)) {
            for (int root : world.roots()) {
              TestTensor tensor = own.floats(100 + own.rank());
              own.group().broadcast(tensor.view(), root);
              tensor.assertValues("broadcast from rank " + root + " of the group", 100 + root);
            }
          }
          if (capabilities.has(OpType.ALL_GATHER)) {
            checkAllGather(own);
          }
          if (capabilities.has(OpType.REDUCE_SCATTER)) {
            checkReduceScatter(own);
          }
          if (capabilities.has(OpType.SEND) && capabilities.has(OpType.RECV)) {
            TestTensor received = own.floats(0);
            own.exchange(own.floats(100 + own.rank()), received);
            received.assertValues("message of the rank before", 100 + own.previous());
          }
        });
  }

  private static void checkAllGather(Member member) {
    List<TestTensor> parts = member.blanks(Layout.CONTIGUOUS, DType.FLOAT32, 1);
    Tensor mine = member.floats(100 + member.rank()).view();
    member.group().allGather(TestTensor.views(parts), mine);
    for (int rank = 0; rank < member.size(); rank++) {
      parts.get(rank).assertValues("part of rank " + rank + " of the group", 100 + rank);
    }
  }

  private static void checkReduceScatter(Member member) {
    int size = member.size();
    List<Tensor> inputs = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      inputs.add(member.floats(100 * rank + member.rank()).view());
    }
    TestTensor sum = member.floats(0);
    member.group().reduceScatter(sum.view(), inputs, ReduceOp.SUM);
    sum.assertValues(
        "part of this rank of the group", 100.0 * size * member.rank() + size * (size - 1) / 2.0);
  }

  /**
   * Puts the ranks of one host into one group, in their order, and maps ranks in both directions.
   */
  @ContractTest(
      onHost = true,
      needs = OpType.ALL_GATHER_INTO,
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void splitByHostKeepsTheRanksOfAHost(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup host = member.group().splitByHost();
          assertThat(host.size()).isEqualTo(member.size());
          assertThat(host.rank()).isEqualTo(member.rank());
          Optional<ProcessGroup> last = host.subgroup(List.of(member.size() - 1));
          if (last.isPresent()) {
            int global = host.globalRank(member.rank());
            assertThat(last.get().globalRank(0)).isEqualTo(global);
            assertThat(last.get().groupRank(global)).hasValue(0);
            assertThat(last.get().groupRank(global + 1)).isEmpty();
          }
        });
  }

  /** Leaves out ranks with a negative color. */
  @ContractTest(movesData = true)
  default void splitLeavesNegativeColorsOut(ContractWorld world) throws Exception {
    world.run(
        member -> {
          boolean in = member.rank() == member.size() - 1;
          Optional<ProcessGroup> alone = member.group().split(in ? 3 : -1, 0);
          assertThat(alone.isPresent()).isEqualTo(in);
          if (in) {
            assertThat(alone.orElseThrow().globalRanks()).containsExactly(member.rank());
            member.in(alone.orElseThrow()).assertUsable();
          }
          member.assertUsable();
        });
  }

  /** Sorts the ranks of a subgroup, and gives the group to its members only. */
  @ContractTest(minSize = 2)
  default void subgroupSortsItsRanks(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int last = member.size() - 1;
          Optional<ProcessGroup> ends = member.group().subgroup(List.of(last, 0));
          boolean in = member.rank() == 0 || member.rank() == last;
          assertThat(ends.isPresent()).isEqualTo(in);
          if (in) {
            assertThat(ends.orElseThrow().globalRanks()).containsExactly(0, last);
            member.in(ends.orElseThrow()).assertUsable();
          }
        });
  }

  /** Creates groups by calls of their members alone, several of the same members among them. */
  @ContractTest(minSize = 2)
  default void membersMakeAGroupWithoutTheOthers(ContractWorld world) throws Exception {
    SubgroupOptions local = SubgroupOptions.DEFAULT.withLocalSynchronization();
    world.run(
        member -> {
          List<Integer> tail = member.ranks().subList(1, member.size());
          if (member.rank() > 0) {
            ProcessGroup first = member.group().subgroup(tail.reversed(), local).orElseThrow();
            ProcessGroup second = member.group().subgroup(tail, local).orElseThrow();
            assertThat(first.globalRanks()).isEqualTo(tail);
            assertThat(second.name()).isNotEqualTo(first.name());
            member.in(second).assertUsable();
            first.close();
            member.in(second).assertUsable();
            Optional<ProcessGroup> inner = second.subgroup(List.of(0), local);
            assertThat(inner.isPresent()).isEqualTo(member.rank() == 1);
            if (inner.isPresent()) {
              member.in(inner.get()).assertUsable();
            }
            second.close();
          } else {
            assertThat(member.group().subgroup(tail, local)).isEmpty();
          }
          member.assertUsable();
        });
  }

  /** Nests groups; each counts its own collectives and has its own name. */
  @ContractTest(minSize = 2)
  default void groupsNestAndCountAlone(ContractWorld world) throws Exception {
    world.run(
        member -> {
          List<Integer> tail = member.ranks().subList(1, member.size());
          ProcessGroup outer = member.twin();
          Optional<ProcessGroup> inner = outer.subgroup(tail);
          assertThat(inner.isPresent()).isEqualTo(member.rank() > 0);
          for (int i = 0; i < 3; i++) {
            member.in(outer).assertUsable();
          }
          if (inner.isPresent()) {
            ProcessGroup group = inner.get();
            assertThat(group.rank()).isEqualTo(member.rank() - 1);
            assertThat(group.globalRanks()).isEqualTo(tail);
            member.in(group).assertUsable();
            assertThat(group.sequenceNumber()).isEqualTo(1);
            assertThat(List.of(member.group().name(), outer.name(), group.name()))
                .doesNotHaveDuplicates();
          }
          assertThat(outer.sequenceNumber()).isEqualTo(3);
        });
  }

  /** Lets a rank close a new group while others are still setting it up; they notice it later. */
  @ContractTest(needs = OpType.ALL_REDUCE, movesData = true, minSize = 2)
  default void aRankMayCloseANewGroupAtOnce(ContractWorld world) throws Exception {
    int rounds = world.isLarge() || TestTier.isFast() ? 4 : 20;
    world.run(member -> closeNewGroups(member, rounds));
  }

  private static void closeNewGroups(Member member, int rounds) throws Exception {
    List<Integer> all = IntStream.range(0, member.size()).boxed().toList();
    for (int round = 0; round < rounds; round++) {
      int leaver = round / 2 % member.size();
      ProcessGroup child =
          (round % 2 == 0 ? member.group().split(0, 0) : member.group().subgroup(all))
              .orElseThrow();
      if (member.rank() == leaver) {
        child.close();
      }
      member.assertUsable();
      if (member.rank() != leaver) {
        Member own = member.in(child);
        CollectiveException failure =
            CaughtFailures.expect(own, CaughtFailures.SLACK, own::awaitSum);
        assertThat(failure.failedRank()).as("%s", failure).hasValue(leaver);
        child.close();
      }
    }
    member.assertUsable();
  }

  /** Lets all ranks close a new group at once, whether or not the others already have it. */
  @ContractTest(minSize = 2)
  default void allRanksMayCloseANewGroupAtOnce(ContractWorld world) throws Exception {
    int rounds = world.isLarge() || TestTier.isFast() ? 4 : 40;
    world.run(
        member -> {
          for (int round = 0; round < rounds; round++) {
            member.group().split(0, 0).orElseThrow().close();
          }
          member.assertUsable();
        });
  }

  /** Closes a subgroup without harm to its parent, and a parent together with all its subgroups. */
  @ContractTest
  default void closingReachesChildrenNotParents(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup first = member.twin();
          ProcessGroup second = member.twin();
          ProcessGroup nested = member.in(second).twin();
          member.in(first).assertUsable();
          first.close();
          assertThat(first.isClosed()).isTrue();
          assertThatThrownBy(member.in(first)::collective).isInstanceOf(GroupClosedException.class);
          assertThat(member.group().isClosed()).isFalse();
          member.in(nested).assertUsable();
          member.assertUsable();
          member.group().close();
          assertThat(second.isClosed()).isTrue();
          assertThat(nested.isClosed()).isTrue();
          assertThatThrownBy(member.in(nested)::collective)
              .isInstanceOf(GroupClosedException.class);
        });
  }

  /** Aborts a subgroup without harm to its parent or its siblings. */
  @ContractTest
  default void abortingASubgroupLeavesTheOthers(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup doomed = member.twin();
          ProcessGroup sibling = member.twin();
          if (member.rank() == 0) {
            doomed.abort("no longer needed");
          }
          Waiting.until("the abort", () -> doomed.failure().isPresent());
          assertThatThrownBy(member.in(doomed)::collective)
              .isInstanceOf(CollectiveException.class)
              .hasMessageContaining("no longer needed");
          member.in(sibling).assertUsable();
          member.assertUsable();
        });
  }

  /** Fails a subgroup on all ranks if they gave different lists; the group stays usable. */
  @ContractTest(movesData = true, minSize = 2)
  default void differentListsFailOnAllRanks(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int last = member.size() - 1;
          List<Integer> ranks = member.ranks();
          Store store = member.group().store();
          if (member.rank() == last) {
            ranks = last == 1 ? List.of(1) : List.of(0, last);
            store.await(IntStream.range(0, last).mapToObj(r -> "calls/" + r).toList());
          } else {
            store.set("calls/" + member.rank(), "1");
          }
          long start = System.nanoTime();
          Throwable failure = failureOfSubgroup(member.group(), ranks);
          assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(CaughtFailures.SOON);
          assertThat(failure)
              .isInstanceOf(CollectiveException.class)
              .isNotInstanceOf(CollectiveTimeoutException.class)
              .hasMessageContaining("gave different lists")
              .hasMessageContaining("rank " + last + " gave ");
          member.assertUsable();
        });
  }

  private static Throwable failureOfSubgroup(ProcessGroup group, List<Integer> ranks) {
    ProcessGroup formed;
    try {
      formed = group.subgroup(ranks).orElseThrow();
    } catch (CollectiveException e) {
      return e;
    }
    // It is there before another rank gives another list.
    Waiting.until("the failure", () -> formed.failure().isPresent());
    return formed.failure().orElseThrow();
  }

  /** Refuses lists that cannot be a group. */
  @ContractTest
  default void subgroupRefusesBadLists(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          refused.badArgument("subgroup", () -> group.subgroup(List.of()));
          refused.badArgument("subgroup", () -> group.subgroup(List.of(0, 0)));
          refused.badArgument("subgroup", () -> group.subgroup(List.of(member.size())));
          refused.badArgument("ranks", () -> group.subgroup(List.of(-1)));
        });
  }
}
