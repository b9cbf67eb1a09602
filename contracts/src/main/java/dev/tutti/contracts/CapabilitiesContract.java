package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Tests that a group reports what its backend declares, and that anything not declared is refused
 * before anything is sent.
 */
public interface CapabilitiesContract extends GroupContract {
  /** Reports the backend's name and capabilities. */
  @ContractTest
  default void theGroupTellsWhatTheBackendDeclares(ContractWorld world) throws Exception {
    world.run(
        member -> {
          ProcessGroup group = member.group();
          Tensor tensor = member.scratch(DType.FLOAT32, 1);
          assertThat(group.capabilities(tensor.device())).isEqualTo(member.capabilities());
          assertThat(group.backends())
              .containsEntry(tensor.device().type(), world.subject().provider().name());
          assertThat(group.name()).isEqualTo("0");
          assertThat(group.size()).isEqualTo(world.size());
          assertThat(group.globalRanks()).hasSize(world.size()).isSorted().startsWith(0);
          assertThat(group.timeout()).isEqualTo(world.groupTimeout());
          assertThat(group.isClosed()).isFalse();
          assertThat(group.failure()).isEmpty();
        });
  }

  /** Shares a store between the ranks. */
  @ContractTest
  default void theGroupSharesAStore(ContractWorld world) throws Exception {
    world.run(
        member -> {
          member.group().store().set("key/" + member.rank(), "value " + member.rank());
          assertThat(member.group().store().get("key/" + member.next()))
              .asString()
              .isEqualTo("value " + member.next());
        });
  }

  /** Refuses operations that are not declared. */
  @ContractTest
  default void undeclaredOperationsAreRefused(ContractWorld world) throws Exception {
    Capabilities capabilities = world.capabilities();
    List<OpType> undeclared =
        Capabilities.ofVersion1().operations().stream()
            .filter(op -> !capabilities.has(op))
            .filter(op -> op != OpType.MONITORED_BARRIER)
            .sorted()
            .toList();
    assumeFalse(undeclared.isEmpty(), "the backend declares every operation");
    Refusals.check(
        world,
        (member, group, refused) -> {
          if (member.rank() == 0) {
            GoodCalls calls = new GoodCalls(member);
            undeclared.forEach(op -> refused.unsupported(op.label(), calls.of(op)));
          }
        });
  }

  /** Refuses types that are not declared movable. */
  @ContractTest(needs = OpType.BROADCAST)
  default void undeclaredTypesAreRefused(ContractWorld world) throws Exception {
    assumeFalse(
        world.capabilities().movable().size() == DType.values().length,
        "the backend moves every type");
    Refusals.check(
        world,
        (member, group, refused) -> {
          for (DType dtype : DType.values()) {
            if (member.rank() == 0 && !member.capabilities().movable().contains(dtype)) {
              Tensor tensor = member.scratch(dtype, 2);
              refused.unsupported(dtype.label(), () -> group.broadcast(tensor, 0));
            }
          }
        });
  }

  /** Refuses reductions that do not exist, and those that the backend does not declare. */
  @ContractTest(needs = OpType.ALL_REDUCE)
  default void reductionsThatCannotBeAreRefused(ContractWorld world) throws Exception {
    Refusals.check(
        world,
        (member, group, refused) -> {
          if (member.rank() == 0) {
            for (DType dtype : member.movable()) {
              for (ReduceOp.Kind kind : ReduceOp.Kind.values()) {
                checkRefusal(refused, dtype, TestData.op(kind, 0));
              }
            }
          }
        });
  }

  /** Refuses parts of unequal size if they are not declared. */
  @ContractTest(needs = OpType.ALL_GATHER, minSize = 2)
  default void undeclaredUnevenPartsAreRefused(ContractWorld world) throws Exception {
    assumeFalse(
        world.capabilities().has(Feature.UNEVEN_PARTS), "the backend takes parts of unequal size");
    world.run(
        member -> {
          List<Tensor> outputs = new ArrayList<>();
          for (int rank = 0; rank < member.size(); rank++) {
            outputs.add(member.scratch(DType.FLOAT32, rank == member.next() ? 3 : 2));
          }
          assertThatThrownBy(
                  () -> member.group().allGather(outputs, member.scratch(DType.FLOAT32, 2)))
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("parts of unequal size (outputs[" + member.next() + "]")
              .hasMessageContaining("rank " + member.rank());
          member.assertUsable();
        });
  }

  /** Refuses tags if they are not declared. */
  @ContractTest(needs = OpType.SEND, minSize = 2)
  default void undeclaredTagsAreRefused(ContractWorld world) throws Exception {
    assumeFalse(world.capabilities().has(Feature.TAGS), "the backend has tags");
    Refusals.check(
        world,
        (member, group, refused) -> {
          Tensor tensor = member.scratch(DType.FLOAT32, 2);
          refused.unsupported(
              "the tag 3", () -> group.send(tensor, member.next(), 3, CallOptions.DEFAULT));
          refused.unsupported(
              "the tag 3", () -> group.recv(tensor, member.previous(), 3, CallOptions.DEFAULT));
        });
  }

  /** Refuses symmetric memory if it is not declared. */
  @ContractTest
  default void undeclaredSymmetricMemoryIsRefused(ContractWorld world) throws Exception {
    assumeFalse(
        world.capabilities().has(Feature.SYMMETRIC_MEMORY), "the backend has symmetric memory");
    Refusals.check(
        world,
        (member, group, refused) -> {
          if (member.rank() == 0) {
            refused.unsupported("allocateSymmetric", () -> group.allocateSymmetric(64));
          }
        });
  }

  private static void checkRefusal(Refusals refused, DType dtype, ReduceOp op) {
    Member member = refused.member();
    if (member.capabilities().canReduce(dtype, op)) {
      return;
    }
    ProcessGroup group = member.group();
    Tensor tensor = member.scratch(dtype, member.size());
    Tensor part = member.scratch(dtype, 1);
    Map<OpType, Refusals.Call> calls = new EnumMap<>(OpType.class);
    calls.put(OpType.ALL_REDUCE, () -> group.allReduce(tensor, op));
    calls.put(OpType.REDUCE, () -> group.reduce(tensor, op, 0));
    calls.put(OpType.REDUCE_SCATTER_INTO, () -> group.reduceScatterInto(part, tensor, op));
    calls.keySet().removeIf(type -> !member.capabilities().has(type));
    for (Refusals.Call call : calls.values()) {
      if (op.isDefinedOn(dtype)) {
        refused.unsupported(dtype.label(), call);
      } else {
        refused.badArgument(dtype.label(), call);
      }
    }
  }
}
