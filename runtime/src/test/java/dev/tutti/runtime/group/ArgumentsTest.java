package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the messages about bad arguments. */
@Timeout(300)
class ArgumentsTest {
  private final ProcessGroup group = new ScriptedProvider().join(2);

  @AfterEach
  void close() {
    group.close();
  }

  private static void refused(String text, Runnable call) {
    assertThatIllegalArgumentException().isThrownBy(call::run).withMessage(text);
  }

  @Test
  void splitsThatOverflow() {
    refused(
        "allToAllSingle on rank 0/2 of group 0: inputSplits must not add up to more than 2^63-1:"
            + " [1, 9223372036854775807]",
        () ->
            group.allToAllSingle(
                Tensor.of(1, 2),
                Tensor.of(3, 4),
                new long[0],
                new long[] {1, Long.MAX_VALUE},
                CallOptions.DEFAULT));
  }

  /** The message names what is null, even in a list, in options, or in a batch. */
  @Test
  @SuppressWarnings("NullAway") // passes null on purpose
  void nullIsRefusedByName() {
    Tensor one = Tensor.of(1f);
    List<Tensor> two = List.of(Tensor.of(1f), Tensor.of(2f));
    List<Tensor> holed = Arrays.asList(Tensor.of(1f), null);
    missing("allReduce", "tensor", () -> group.allReduce(null));
    missing("allReduce", "tensor", () -> group.allReduce(null, ReduceOp.SUM, CallOptions.DEFAULT));
    missing("allReduce", "reduceOp", () -> group.allReduce(one, null));
    missing("allReduce", "options", () -> group.allReduce(one, ReduceOp.SUM, null));
    missing("broadcast", "tensor", () -> group.broadcast(null, 0));
    missing("reduce", "tensor", () -> group.reduce(null, ReduceOp.SUM, 0));
    missing("reduce", "reduceOp", () -> group.reduce(one, null, 0));
    missing("allGather", "outputs", () -> group.allGather(null, one));
    missing("allGather", "outputs[1]", () -> group.allGather(holed, one));
    missing("allGather", "input", () -> group.allGather(two, null));
    missing("allGatherInto", "output", () -> group.allGatherInto(null, one));
    missing("allGatherInto", "input", () -> group.allGatherInto(one, null));
    missing("gather", "input", () -> group.gather(two, null, 0));
    missing("gather", "outputs", () -> group.gather(null, one, 0));
    missing("scatter", "output", () -> group.scatter(null, two, 0));
    missing("scatter", "inputs", () -> group.scatter(one, null, 0));
    missing("reduceScatter", "output", () -> group.reduceScatter(null, two, ReduceOp.SUM));
    missing("reduceScatter", "inputs[1]", () -> group.reduceScatter(one, holed, ReduceOp.SUM));
    missing("reduceScatter", "reduceOp", () -> group.reduceScatter(one, two, null));
    missing("reduceScatterInto", "output", () -> group.reduceScatterInto(null, one, ReduceOp.SUM));
    missing("reduceScatterInto", "input", () -> group.reduceScatterInto(one, null, ReduceOp.SUM));
    missing("allToAll", "outputs", () -> group.allToAll(null, two));
    missing("allToAll", "inputs", () -> group.allToAll(two, null));
    missing("allToAll", "outputs[1]", () -> group.allToAll(holed, two));
    missing("allToAllSingle", "output", () -> group.allToAllSingle(null, one));
    missing("allToAllSingle", "input", () -> group.allToAllSingle(one, null));
    missing(
        "allToAllSingle",
        "inputSplits",
        () ->
            group.allToAllSingle(
                Tensor.of(1, 2), Tensor.of(3, 4), new long[0], null, CallOptions.DEFAULT));
    missing(
        "allReduceCoalesced",
        "tensors",
        () -> group.allReduceCoalesced(null, ReduceOp.SUM, CallOptions.DEFAULT));
    missing(
        "allReduceCoalesced",
        "tensors[1]",
        () -> group.allReduceCoalesced(holed, ReduceOp.SUM, CallOptions.DEFAULT));
    missing("barrier", "options", () -> group.barrier(null));
    missing("monitoredBarrier", "timeout", () -> group.monitoredBarrier(null, MissingRanks.ALL));
    missing("send", "tensor", () -> group.send(null, 1));
    missing("recv", "tensor", () -> group.recv(null, 1));
    missing("recv", "options", () -> group.recv(one, 1, 0, null));
    missing("allReduce", "tensor", () -> group.batch().allReduce(null, ReduceOp.SUM).run());
    missing("subgroup", "ranks", () -> group.subgroup(null));
    missing("subgroup", "each of ranks", () -> group.subgroup(Arrays.asList(0, null)));
    missing("allGather", "codec", () -> group.allGatherObject("a", null));
    missing("broadcast", "codec", () -> group.broadcastObject("a", 0, null));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> group.setTimeout(null))
        .withMessage("timeout must be positive, not null");
    assertThat(group.sequenceNumber()).isZero();
    assertThat(group.failure()).isEmpty();
  }

  private static void missing(String operation, String argument, Runnable call) {
    refused(operation + " on rank 0/2 of group 0: " + argument + " must not be null", call);
  }

  @Test
  void algorithmsAreOfTheAllReduceAlone() {
    CallOptions ring = CallOptions.ASYNC.withAlgorithm("ring");
    Tensor one = Tensor.of(1f);
    List<Tensor> two = List.of(Tensor.of(1f), Tensor.of(2f));
    Map<String, Runnable> calls =
        Map.of(
            "barrier", () -> group.barrier(ring),
            "broadcast", () -> group.broadcast(one, 0, ring),
            "reduce", () -> group.reduce(one, ReduceOp.SUM, 0, ring),
            "allReduceCoalesced", () -> group.allReduceCoalesced(two, ReduceOp.SUM, ring),
            "allGather", () -> group.allGather(two, one, ring),
            "send", () -> group.send(one, 1, 0, ring));
    calls.forEach(
        (operation, call) ->
            assertThatThrownBy(call::run)
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith(
                    operation
                        + " on rank 0: backend 'scripted' does not support algorithm ring here: ")
                .hasMessageContaining("only the all-reduce of one dense tensor supports it"));
    assertThat(group.sequenceNumber()).isZero();
    assertThat(group.failure()).isEmpty();
  }

  @Test
  void symmetricMemoryBeyondAllBounds() {
    refused(
        "allocateSymmetric on rank 0/2 of group 0: byteSize must be in 1..2305843009213693952, but"
            + " is 9223372036854775807",
        () -> group.allocateSymmetric(Long.MAX_VALUE));
  }

  @Test
  void subgroupsThatCannotBe() {
    refused(
        "subgroup on rank 0/2 of group 0: each of ranks must be a rank in 0..1, not 5",
        () -> group.subgroup(List.of(5)));
    refused(
        "subgroup on rank 0/2 of group 0: ranks must be one or more ranks without duplicates, not"
            + " [0, 0]",
        () -> group.subgroup(List.of(0, 0)));
    refused(
        "subgroup on rank 0/2 of group 0: ranks must be one or more ranks without duplicates, not"
            + " []",
        () -> group.subgroup(List.of()));
  }

  @Test
  void indicesOutsideASparseTensor() {
    Tensor values = Tensor.of(1f, 2f);
    String call = "allReduceSparse on rank 0/2 of group 0: ";
    refused(
        call
            + "indices[1, 0] is 4, which is outside dimension 1 of tensor: float32[3, 4] sparse on"
            + " cpu",
        () -> reduceSparse(Tensor.sparse(Tensor.of(2L, 0, 4, 3).view(2, 2), values, 3, 4)));
    refused(
        call
            + "indices[0, 1] is -1, which is outside dimension 0 of tensor: float32[3, 4] sparse on"
            + " cpu",
        () -> reduceSparse(Tensor.sparse(Tensor.of(2L, -1, 0, 3).view(2, 2), values, 3, 4)));
    refused(
        call
            + "indices[0, 0] is 0, which is outside dimension 0 of tensor: float32[0] sparse on"
            + " cpu",
        () -> reduceSparse(Tensor.sparse(Tensor.of(0L, 0).view(1, 2), values, 0)));
    reduceSparse(Tensor.sparse(Tensor.of(2L, 0, 0, 3).view(2, 2), values, 3, 4));
    reduceSparse(
        Tensor.sparse(
            Tensor.allocate(DType.INT64, 1, 0), Tensor.allocate(DType.FLOAT32, 0, 2), 0, 2));
    assertThat(group.sequenceNumber()).isEqualTo(2);
    assertThat(group.failure()).isEmpty();
  }

  private void reduceSparse(Tensor tensor) {
    group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT).await();
  }

  private static Tensor strided(long[] shape, long... strides) {
    return strided(Tensor.allocate(DType.FLOAT32, 64).segment(), shape, strides);
  }

  private static Tensor strided(MemorySegment memory, long[] shape, long... strides) {
    return Tensor.wrap(memory, DType.FLOAT32, shape, strides, Device.CPU);
  }

  @Test
  void writtenElementsThatShareMemory() {
    List<Tensor> overlapping =
        List.of(
            strided(new long[] {2, 2}, 1, 1),
            strided(new long[] {3, 2}, 0, 1),
            strided(new long[] {4, 3}, 2, 3),
            strided(new long[] {2, 3, 4}, 6, 4, 1));
    for (Tensor tensor : overlapping) {
      refused(
          "recv on rank 0/2 of group 0: tensor is written to, but its elements share memory: "
              + tensor,
          () -> group.recv(tensor, 1));
    }
    Tensor matrix = Tensor.allocate(DType.FLOAT32, 6, 6);
    List<Tensor> apart =
        List.of(
            matrix.transpose(0, 1),
            matrix.narrow(1, 2, 3),
            matrix.narrow(1, 2, 3).transpose(0, 1),
            matrix.select(1, 2),
            strided(new long[] {8}, 2),
            strided(new long[] {4, 1, 8}, 16, 0, 2),
            strided(new long[] {2, 3}, 3, 2),
            strided(new long[] {3, 4}, 2, 3),
            strided(new long[] {2, 0}, 0, 0),
            strided(new long[] {}));
    apart.forEach(tensor -> group.recv(tensor, 1));
    // Too large to check each element.
    Tensor large = Tensor.allocate(DType.UINT8, 1 << 20);
    long[] shape = {1 << 10, 1 << 9};
    for (long[] strides : new long[][] {{1, 1}, {512, 2}}) {
      Tensor tensor = Tensor.wrap(large.segment(), DType.UINT8, shape, strides, Device.CPU);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> group.recv(tensor, 1))
          .withMessageContaining("its elements share memory");
    }
    group.recv(
        Tensor.wrap(large.segment(), DType.UINT8, shape, new long[] {1, 1 << 10}, Device.CPU), 1);
  }

  @Test
  void onlyTheRootOfABroadcastMayGiveMemoryThatMustNotBeWritten() {
    MemorySegment memory = Tensor.allocate(DType.FLOAT32, 6).segment();
    Tensor readOnly = Tensor.wrap(memory.asReadOnly(), DType.FLOAT32, 6);
    Tensor array = Tensor.wrap(MemorySegment.ofArray(new float[6]).asReadOnly(), DType.FLOAT32, 6);
    Tensor expanded = strided(memory, new long[] {3, 2}, 0, 1);
    for (Tensor tensor : List.of(readOnly, array, expanded)) {
      group.broadcast(tensor, 0);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> group.broadcast(tensor, 1))
          .withMessageStartingWith(
              "broadcast on rank 0/2 of group 0: tensor is written to, but its");
    }
    assertThat(group.sequenceNumber()).isEqualTo(3);
  }

  @Test
  void onlyTheRootOfABroadcastOnAStreamMayGiveMemoryThatMustNotBeWritten() {
    ScriptedProvider ordered = new ScriptedProvider();
    ordered.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
    Tensor readOnly =
        Tensor.wrap(Tensor.allocate(DType.FLOAT32, 6).segment().asReadOnly(), DType.FLOAT32, 6);
    try (ProcessGroup streams = ordered.join(2)) {
      streams.broadcast(readOnly, 0);
      assertThatIllegalArgumentException().isThrownBy(() -> streams.broadcast(readOnly, 1));
    }
  }
}
