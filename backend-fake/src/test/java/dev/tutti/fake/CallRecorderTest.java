package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

class CallRecorderTest {
  private final CallRecorder recorder = new CallRecorder();

  @Test
  void callsOfEachRankAreKeptInOrder() {
    Worlds.patient(2)
        .withRecorder(recorder)
        .run(
            group -> {
              group.allReduce(Tensor.allocate(DType.FLOAT32, 2, 3), ReduceOp.MAX);
              group.broadcast(Tensor.of(1L), 1);
              group.allGatherInto(Tensor.allocate(DType.INT8, 4), Tensor.allocate(DType.INT8, 2));
              group.barrier();
              if (group.rank() == 0) {
                group.send(Tensor.of(5), 1, 9, CallOptions.DEFAULT);
              } else {
                group.recv(Tensor.of(0), 0, 9, CallOptions.DEFAULT);
              }
            });
    for (int rank = 0; rank < 2; rank++) {
      List<List<Long>> two = List.of(List.of(2L, 3L));
      List<List<Long>> one = List.of(List.of(1L));
      List<List<Long>> none = List.of();
      OptionalInt no = OptionalInt.empty();
      assertThat(recorder.calls(rank))
          .containsExactly(
              new RecordedCallData(
                  "0", rank, OpType.ALL_REDUCE, 1, DType.FLOAT32, two, two, no, no, ReduceOp.MAX),
              new RecordedCallData(
                  "0",
                  rank,
                  OpType.BROADCAST,
                  2,
                  DType.INT64,
                  one,
                  one,
                  OptionalInt.of(1),
                  no,
                  null),
              new RecordedCallData(
                  "0",
                  rank,
                  OpType.ALL_GATHER_INTO,
                  3,
                  DType.INT8,
                  List.of(List.of(2L)),
                  List.of(List.of(4L)),
                  no,
                  no,
                  null),
              new RecordedCallData("0", rank, OpType.BARRIER, 4, null, none, none, no, no, null),
              new RecordedCallData(
                  "0",
                  rank,
                  rank == 0 ? OpType.SEND : OpType.RECV,
                  1,
                  DType.INT32,
                  rank == 0 ? one : none,
                  rank == 0 ? none : one,
                  OptionalInt.of(1 - rank),
                  OptionalInt.of(9),
                  null));
    }
    assertThat(recorder.calls(OpType.BROADCAST)).hasSize(2);
    recorder.clear();
    assertThat(recorder.calls()).isEmpty();
  }

  @Test
  void refusedCallsAreNotRecorded() {
    Worlds.patient(2)
        .withRecorder(recorder)
        .run(
            group ->
                assertThatThrownBy(() -> group.broadcast(Tensor.of(1), 2))
                    .isInstanceOf(IllegalArgumentException.class));
    assertThat(recorder.calls()).isEmpty();
  }

  @Test
  void subgroupsAreToldApart() {
    Worlds.patient(3)
        .withRecorder(recorder)
        .run(group -> group.subgroup(List.of(0, 2)).ifPresent(child -> child.barrier()));
    assertThat(recorder.calls())
        .extracting(call -> call.group() + " " + call.rank() + " " + call.opType())
        .containsExactlyInAnyOrder("1 0 BARRIER", "1 1 BARRIER");
  }
}
