package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests which tensors of an operation may share memory, as rank 1 of 3. */
@Timeout(300)
class OverlapsTest {
  private static final int RANK = 1;
  private static final int SIZE = 3;

  private final ProcessGroup group = new ScriptedProvider().joinAs(RANK, SIZE);
  private final Tensor memory = Tensor.allocate(DType.FLOAT32, 64);

  @AfterEach
  void close() {
    group.close();
  }

  private Tensor at(long start, long length) {
    return memory.narrow(0, start, length);
  }

  private List<Tensor> parts(long start, long length) {
    List<Tensor> parts = new ArrayList<>();
    for (int r = 0; r < SIZE; r++) {
      parts.add(at(start + r * length, length));
    }
    return parts;
  }

  private static void refused(String text, Runnable call) {
    assertThatIllegalArgumentException().isThrownBy(call::run).withMessageContaining(text);
  }

  @Test
  void anAllToAllIsNeverInPlace() {
    String both = "output (float32[6] on cpu) and input (float32[6] on cpu) must not share memory";
    for (int start : new int[] {1, 5, 6, 7, 11}) {
      refused(
          "allToAllSingle on rank 1/3 of group 0: " + both,
          () -> group.allToAllSingle(at(6, 6), at(start, 6)));
    }
    group.allToAllSingle(at(6, 6), at(0, 6));
    group.allToAllSingle(at(6, 6), at(12, 6));
    refused(
        "outputs[0] (float32[2] on cpu) and inputs[2] (float32[2] on cpu) must not share memory",
        () -> group.allToAll(parts(5, 2), parts(0, 2)));
    refused("outputs[0]", () -> group.allToAll(parts(0, 2), parts(0, 2)));
    group.allToAll(parts(6, 2), parts(0, 2));
    assertThat(group.sequenceNumber()).isEqualTo(3);
  }

  @Test
  void oneInputMayGoToAllRanks() {
    Tensor same = at(0, 2);
    group.allToAll(parts(2, 2), List.of(same, same, same));
    group.reduceScatter(at(2, 2), List.of(same, same, same), ReduceOp.SUM);
    refused("inputs[1]", () -> group.allToAll(parts(1, 2), List.of(at(20, 2), same, at(22, 2))));
    assertThat(group.sequenceNumber()).isEqualTo(2);
  }

  @Test
  void aGatherTakesExactlyThisRanksPartInPlace() {
    group.allGatherInto(at(0, 6), at(2, 2));
    for (int start : new int[] {0, 1, 3, 4, 5}) {
      refused(
          "except where one is exactly this rank's part of the other",
          () -> group.allGatherInto(at(0, 6), at(start, 2)));
    }
    refused("must not share memory", () -> group.allGatherInto(at(1, 6), at(0, 2)));
    group.allGather(parts(0, 2), at(2, 2));
    refused("outputs[0]", () -> group.allGather(parts(0, 2), at(0, 2)));
    refused("must not share memory", () -> group.allGather(parts(0, 2), at(3, 2)));
    group.gather(parts(0, 2), at(2, 2), RANK);
    refused("outputs[2]", () -> group.gather(parts(0, 2), at(5, 2), RANK));
    group.allGatherIntoCoalesced(
        List.of(at(0, 6), at(6, 6)), List.of(at(2, 2), at(8, 2)), CallOptions.DEFAULT);
    refused(
        "outputs[1] (float32[6] on cpu) and inputs[0]",
        () ->
            group.allGatherIntoCoalesced(
                List.of(at(0, 6), at(6, 6)), List.of(at(8, 2), at(20, 2)), CallOptions.DEFAULT));
    assertThat(group.sequenceNumber()).isEqualTo(4);
  }

  @Test
  void aScatterGivesExactlyThisRanksPartInPlace() {
    group.reduceScatterInto(at(2, 2), at(0, 6), ReduceOp.SUM);
    for (int start : new int[] {0, 1, 3, 4, 5}) {
      refused(
          "except where one is exactly this rank's part of the other",
          () -> group.reduceScatterInto(at(start, 2), at(0, 6), ReduceOp.SUM));
    }
    group.reduceScatter(at(2, 2), parts(0, 2), ReduceOp.SUM);
    refused("inputs[0]", () -> group.reduceScatter(at(0, 2), parts(0, 2), ReduceOp.SUM));
    group.scatter(at(2, 2), parts(0, 2), RANK);
    refused("inputs[2]", () -> group.scatter(at(4, 2), parts(0, 2), RANK));
    group.reduceScatterIntoCoalesced(
        List.of(at(2, 2), at(8, 2)),
        List.of(at(0, 6), at(6, 6)),
        ReduceOp.SUM,
        CallOptions.DEFAULT);
    refused(
        "output",
        () ->
            group.reduceScatterIntoCoalesced(
                List.of(at(2, 2), at(3, 2)),
                List.of(at(0, 6), at(6, 6)),
                ReduceOp.SUM,
                CallOptions.DEFAULT));
    refused(
        "outputs[0] (float32[2] on cpu) and inputs[1]",
        () ->
            group.reduceScatterIntoCoalesced(
                List.of(at(2, 2), at(20, 2)),
                List.of(at(0, 6), at(0, 6)),
                ReduceOp.SUM,
                CallOptions.DEFAULT));
    assertThat(group.sequenceNumber()).isEqualTo(4);
  }

  @Test
  void arraysAreToldApartAndCopiesMayShare() {
    MemorySegment array = MemorySegment.ofArray(new float[12]);
    Tensor first = Tensor.wrap(array.asSlice(0, 24), DType.FLOAT32, 6);
    Tensor second = Tensor.wrap(array.asSlice(24, 24), DType.FLOAT32, 6);
    Tensor other = Tensor.wrap(MemorySegment.ofArray(new float[6]), DType.FLOAT32, 6);
    group.allToAllSingle(first, second);
    group.allToAllSingle(first, other);
    group.allGatherIntoCoalesced(
        List.of(first), List.of(other.narrow(0, 0, 2)), CallOptions.DEFAULT);
    refused("must not share memory", () -> group.allToAllSingle(first, first));
    refused(
        "must not share memory",
        () ->
            group.allGatherIntoCoalesced(
                List.of(other, first),
                List.of(second.narrow(0, 0, 2), first.narrow(0, 4, 2)),
                CallOptions.DEFAULT));
    Tensor matrix = at(0, 36).view(6, 6);
    group.allToAllSingle(matrix, matrix.transpose(0, 1));
    group.allToAllSingle(at(0, 0), at(0, 0));
    assertThat(group.sequenceNumber()).isEqualTo(5);
  }

  @Test
  void outputsMustNotShareMemory() {
    Tensor same = at(0, 2);
    Tensor input = at(20, 2);
    refused(
        "allGather on rank 1/3 of group 0: outputs[0] (float32[2] on cpu) and outputs[1]"
            + " (float32[2] on cpu) must not share memory",
        () -> group.allGather(Collections.nCopies(SIZE, same), input));
    refused(
        "outputs[0] (float32[2] on cpu) and outputs[2] (float32[2] on cpu) must not share memory",
        () -> group.gather(List.of(at(1, 2), at(4, 2), at(0, 2)), input, RANK));
    refused(
        "outputs[0] (float32[2] on cpu) and outputs[1]",
        () -> group.allToAll(List.of(at(0, 2), at(1, 2), at(4, 2)), parts(20, 2)));
    refused(
        "outputs[0] (float32[6] on cpu) and outputs[1]",
        () ->
            group.allGatherIntoCoalesced(
                List.of(at(0, 6), at(5, 6)), List.of(at(20, 2), at(22, 2)), CallOptions.DEFAULT));
    Tensor array = Tensor.wrap(MemorySegment.ofArray(new float[6]), DType.FLOAT32, 6);
    refused(
        "outputs[1] (float32[2] on cpu) and outputs[2]",
        () ->
            group.allGather(
                List.of(same, array.narrow(0, 0, 2), array.narrow(0, 1, 2)), at(20, 2)));
    group.allGather(List.of(same, array.narrow(0, 0, 2), array.narrow(0, 2, 2)), at(20, 2));
    Tensor empty = at(0, 0);
    group.allGather(List.of(empty, empty, empty), empty);
    assertThat(group.sequenceNumber()).isEqualTo(2);
  }

  @Test
  void tensorsReducedTogetherMustNotShareMemory() {
    Tensor whole = at(0, 6);
    refused(
        "tensors[0] (float32[6] on cpu) and tensors[1] (float32[6] on cpu) must not share memory",
        () -> group.allReduceCoalesced(List.of(whole, whole), ReduceOp.SUM, CallOptions.DEFAULT));
    refused(
        "tensors[0] (float32[6] on cpu) and tensors[2] (float32[2] on cpu) must not share memory",
        () ->
            group.allReduceCoalesced(
                List.of(whole, at(6, 2), at(2, 2)), ReduceOp.SUM, CallOptions.DEFAULT));
    Tensor matrix = at(0, 36).view(6, 6);
    Tensor columns = matrix.narrow(1, 0, 2);
    refused(
        "tensors[0] (float32[6, 2] strides [6, 1] on cpu) and tensors[1] (float32[6, 2] strides",
        () ->
            group.allReduceCoalesced(List.of(columns, columns), ReduceOp.SUM, CallOptions.DEFAULT));
    refused(
        "must not share memory",
        () ->
            group.allReduceCoalesced(
                List.of(matrix.narrow(1, 1, 2), columns), ReduceOp.SUM, CallOptions.DEFAULT));
    refused(
        "must not share memory",
        () ->
            group.allReduceCoalesced(
                List.of(matrix, matrix.transpose(0, 1)), ReduceOp.SUM, CallOptions.DEFAULT));
    group.allReduceCoalesced(
        List.of(matrix.narrow(0, 2, 4), matrix.narrow(0, 0, 2)), ReduceOp.SUM, CallOptions.DEFAULT);
    group.allReduceCoalesced(
        List.of(matrix.narrow(1, 2, 4), columns), ReduceOp.SUM, CallOptions.DEFAULT);
    group.allReduceCoalesced(
        List.of(at(0, 0), whole, at(0, 0), at(3, 0)), ReduceOp.SUM, CallOptions.DEFAULT);
    assertThat(group.sequenceNumber()).isEqualTo(3);
  }

  @Test
  void operationsOnStreamsRefuseTheSame() {
    ScriptedProvider ordered = new ScriptedProvider();
    ordered.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
    try (ProcessGroup streams = ordered.joinAs(RANK, SIZE)) {
      refused("must not share memory", () -> streams.allGatherInto(at(0, 6), at(0, 2)));
      refused(
          "must not share memory",
          () -> streams.reduceScatterInto(at(0, 2), at(0, 6), ReduceOp.SUM));
    }
  }
}
