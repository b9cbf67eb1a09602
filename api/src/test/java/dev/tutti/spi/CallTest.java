package dev.tutti.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that a call reaches the method of its type with its arguments. */
class CallTest {
  private static final Tensor IN = Tensor.of(1f, 2f);
  private static final Tensor OUT = Tensor.of(3f, 4f);
  private static final List<Tensor> INS = List.of(IN, Tensor.of(5f, 6f));
  private static final List<Tensor> OUTS = List.of(OUT, Tensor.of(7f, 8f));
  private static final long[] FROM = {1, 1};
  private static final long[] TO = {2, 0};

  private final List<Object> called = new ArrayList<>();

  private final Backend backend =
      played(
          Backend.class,
          (proxy, method, arguments) -> {
            if (method.getName().equals("run")) {
              return InvocationHandler.invokeDefault(proxy, method, arguments);
            }
            called.add(method.getName());
            called.addAll(Arrays.asList(arguments).subList(1, arguments.length));
            return null;
          });

  private static <T> T played(Class<T> type, InvocationHandler handler) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }

  private void run(Call call) throws Exception {
    called.clear();
    backend.run(
        played(
            Operation.class,
            (proxy, method, arguments) ->
                method.isDefault()
                    ? InvocationHandler.invokeDefault(proxy, method, arguments)
                    : call));
  }

  @ParameterizedTest
  @EnumSource(
      mode = EnumSource.Mode.EXCLUDE,
      names = {"BATCH", "SPLIT", "INIT", "CLOSE", "SUBGROUP", "RECONFIGURE", "UNKNOWN"})
  void eachTypeReachesTheMethodOfItsName(OpType type) throws Exception {
    Call call = new Call(type).reduceOp(ReduceOp.MAX).root(1).tag(7).byteSize(9).splits(FROM, TO);
    boolean several =
        type == OpType.ALL_REDUCE_COALESCED
            || type == OpType.ALL_GATHER_INTO_COALESCED
            || type == OpType.REDUCE_SCATTER_INTO_COALESCED
            || type == OpType.ALL_TO_ALL;
    run(
        several || type == OpType.SCATTER || type == OpType.REDUCE_SCATTER
            ? call.inputs(INS).outputs(several ? OUTS : List.of(OUT))
            : call.input(IN).output(OUT));
    assertThat(called.get(0)).isEqualTo(type.label());
  }

  @Test
  void argumentsArriveInTheirPlaces() throws Exception {
    run(new Call(OpType.REDUCE).inPlace(IN).reduceOp(ReduceOp.MAX).root(1));
    assertThat(called).containsExactly("reduce", IN, ReduceOp.MAX, 1);
    run(new Call(OpType.ALL_REDUCE).inPlace(IN).reduceOp(ReduceOp.SUM));
    assertThat(called).containsExactly("allReduce", IN, ReduceOp.SUM);
    run(new Call(OpType.ALL_GATHER).outputs(OUTS).input(IN));
    assertThat(called).containsExactly("allGather", OUTS, IN);
    run(new Call(OpType.SCATTER).output(OUT).inputs(INS).root(0));
    assertThat(called).containsExactly("scatter", OUT, INS, 0);
    run(new Call(OpType.ALL_TO_ALL_SINGLE).output(OUT).input(IN).splits(FROM, TO));
    assertThat(called).containsExactly("allToAllSingle", OUT, IN, FROM, TO);
    run(new Call(OpType.RECV).output(OUT).root(3).tag(7));
    assertThat(called).containsExactly("recv", OUT, 3, 7);
    run(new Call(OpType.ALLOCATE_SYMMETRIC).byteSize(64));
    assertThat(called).containsExactly("allocateSymmetric", 64L);
  }

  @Test
  void whatIsNoOperationOfABackendIsRefused() {
    assertThatThrownBy(() -> run(new Call(OpType.SPLIT)))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("split");
  }

  @Test
  void aCallThatIsUsedAgainKnowsNothingOfTheLastOne() {
    Call call =
        new Call(OpType.REDUCE)
            .inPlace(IN)
            .reduceOp(ReduceOp.MAX)
            .root(1)
            .tag(7)
            .algorithm("ring")
            .splits(FROM, TO)
            .byteSize(9)
            .waitAllRanks(true)
            .reset(OpType.BARRIER, null);
    assertThat(call).usingRecursiveComparison().isEqualTo(new Call(OpType.BARRIER));
    assertThat(call.numel()).isZero();
    assertThat(call.first()).isNull();
    assertThat(call.inputs()).isEmpty();
    assertThat(call.outputs()).isEmpty();
  }

  @Test
  void onlyACallThatHasARootTellsIt() {
    Call rooted = new Call(OpType.BROADCAST).root(2);
    assertThat(rooted.root()).isEqualTo(2);
    assertThat(rooted.rootOr(7)).isEqualTo(2);
    assertThat(rooted.optionalRoot()).hasValue(2);
    Call call = new Call(OpType.RECV_ANY_SOURCE).output(OUT);
    assertThat(call.rootOr(7)).isEqualTo(7);
    assertThat(call.optionalRoot()).isEmpty();
    assertThatThrownBy(call::root)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("recvAnySource has no root and no peer");
  }

  @Test
  void aCallInPlaceStaysSoWithOtherTensors() {
    Call call = new Call(OpType.ALL_REDUCE).inPlace(IN).reduceOp(ReduceOp.SUM).root(2);
    Call other = call.withTensors(List.of(OUT), List.of());
    assertThat(other.input()).isSameAs(OUT);
    assertThat(other.output()).isSameAs(OUT);
    assertThat(other.root()).isEqualTo(2);
    assertThat(call.input()).isSameAs(IN);
  }

  @Test
  void elementsAreThoseOfWhatIsRead() {
    assertThat(new Call(OpType.ALL_GATHER).outputs(OUTS).input(IN).numel()).isEqualTo(2);
    assertThat(new Call(OpType.SCATTER).output(OUT).inputs(INS).numel()).isEqualTo(4);
    assertThat(new Call(OpType.SCATTER).output(OUT).inputs(List.of()).numel()).isEqualTo(2);
    assertThat(new Call(OpType.RECV).output(OUT).first()).isSameAs(OUT);
  }

  @Test
  void theTextNamesTypeOperatorTensorsAndRoot() {
    assertThat(new Call(OpType.REDUCE).inPlace(IN).reduceOp(ReduceOp.SUM).root(1))
        .hasToString("reduce SUM float32[2] root 1");
    assertThat(new Call(OpType.SEND).input(IN).root(1).tag(7))
        .hasToString("send float32[2] -> [] peer 1 tag 7");
    assertThat(new Call(OpType.ALL_GATHER_INTO).output(OUT).input(IN))
        .hasToString("allGatherInto float32[2] -> float32[2]");
  }
}
