package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ThreadedMovementTest {
  private static Tensor own(DType dtype, long count, int rank) {
    return Samples.fill(Tensor.allocate(dtype, count), rank);
  }

  private static void check(Tensor actual, int from) {
    assertThat(Samples.sameBits(actual, own(actual.dtype(), actual.numel(), from)))
        .as("%s from rank %s", actual, from)
        .isTrue();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void everyTypeMoves(int size) {
    RawWorld.run(
        size,
        rank -> {
          for (DType dtype : DType.values()) {
            moveAll(rank, dtype, 5);
          }
        });
  }

  @Test
  void muchDataMovesInParallel() {
    RawWorld.run(4, rank -> moveAll(rank, DType.INT64, 40_000));
  }

  private static void moveAll(RawWorld.Rank rank, DType dtype, long count) throws Exception {
    broadcast(rank, dtype, count);
    gathers(rank, dtype, count);
    scatter(rank, dtype, count);
    exchange(rank, dtype, count);
  }

  private static void broadcast(RawWorld.Rank rank, DType dtype, long count) throws Exception {
    for (int root = 0; root < rank.size; root++) {
      Tensor tensor = own(dtype, count, rank.rank);
      rank.backend.broadcast(rank.op(OpType.BROADCAST), tensor, root);
      check(tensor, root);
    }
  }

  private static void gathers(RawWorld.Rank rank, DType dtype, long count) throws Exception {
    Tensor input = own(dtype, count, rank.rank);
    Tensor output = Tensor.allocate(dtype, rank.size, count);
    rank.backend.allGatherInto(rank.op(OpType.ALL_GATHER_INTO), output, input);
    Tensor second = Tensor.allocate(dtype, rank.size, count);
    rank.backend.allGatherIntoCoalesced(
        rank.op(OpType.ALL_GATHER_INTO_COALESCED), List.of(second), List.of(input));
    List<Tensor> uneven = new ArrayList<>();
    for (int peer = 0; peer < rank.size; peer++) {
      check(output.select(0, peer), peer);
      check(second.select(0, peer), peer);
      uneven.add(Tensor.allocate(dtype, count * peer));
    }
    rank.backend.allGather(
        rank.op(OpType.ALL_GATHER), uneven, own(dtype, count * rank.rank, rank.rank));
    for (int peer = 0; peer < rank.size; peer++) {
      check(uneven.get(peer), peer);
    }
    // In place: the input is the rank's own slot.
    Tensor slots = Tensor.allocate(dtype, rank.size, count);
    Samples.fill(slots.select(0, rank.rank), rank.rank);
    rank.backend.allGatherInto(rank.op(OpType.ALL_GATHER_INTO), slots, slots.select(0, rank.rank));
    for (int peer = 0; peer < rank.size; peer++) {
      check(slots.select(0, peer), peer);
    }
    int root = rank.size - 1;
    List<Tensor> outputs = new ArrayList<>();
    if (rank.rank == root) {
      for (int peer = 0; peer < rank.size; peer++) {
        outputs.add(Tensor.allocate(dtype, count));
      }
    }
    rank.backend.gather(rank.op(OpType.GATHER), outputs, input, root);
    for (int peer = 0; peer < outputs.size(); peer++) {
      check(outputs.get(peer), peer);
    }
  }

  private static void scatter(RawWorld.Rank rank, DType dtype, long count) throws Exception {
    for (int root = 0; root < rank.size; root++) {
      List<Tensor> inputs = new ArrayList<>();
      if (rank.rank == root) {
        for (int peer = 0; peer < rank.size; peer++) {
          inputs.add(own(dtype, count, 100 * root + peer));
        }
      }
      Tensor output = Tensor.allocate(dtype, count);
      rank.backend.scatter(rank.op(OpType.SCATTER), output, inputs, root);
      check(output, 100 * root + rank.rank);
    }
  }

  private static void exchange(RawWorld.Rank rank, DType dtype, long count) throws Exception {
    List<Tensor> inputs = new ArrayList<>();
    List<Tensor> outputs = new ArrayList<>();
    long[] given = new long[rank.size];
    long[] taken = new long[rank.size];
    for (int peer = 0; peer < rank.size; peer++) {
      given[peer] = (rank.rank + 2L * peer) % 4;
      taken[peer] = (peer + 2L * rank.rank) % 4;
      inputs.add(own(dtype, given[peer] * count, 10 * rank.rank + peer));
      outputs.add(Tensor.allocate(dtype, taken[peer] * count));
    }
    rank.backend.allToAll(rank.op(OpType.ALL_TO_ALL), outputs, inputs);
    Tensor input = Tensor.allocate(dtype, sum(given), count);
    Tensor output = Tensor.allocate(dtype, sum(taken), count);
    long row = 0;
    for (int peer = 0; peer < rank.size; peer++) {
      check(outputs.get(peer), 10 * peer + rank.rank);
      input.narrow(0, row, given[peer]).copyFrom(inputs.get(peer));
      row += given[peer];
    }
    rank.backend.allToAllSingle(rank.op(OpType.ALL_TO_ALL_SINGLE), output, input, taken, given);
    row = 0;
    for (int peer = 0; peer < rank.size; peer++) {
      check(output.narrow(0, row, taken[peer]), 10 * peer + rank.rank);
      row += taken[peer];
    }
  }

  private static long sum(long[] values) {
    long sum = 0;
    for (long value : values) {
      sum += value;
    }
    return sum;
  }

  @Test
  void barriersHoldEverybody() {
    AtomicInteger arrived = new AtomicInteger();
    RawWorld.run(
        8,
        rank -> {
          for (int round = 1; round <= 200; round++) {
            arrived.incrementAndGet();
            rank.backend.barrier(rank.op(OpType.BARRIER));
            assertThat(arrived.get()).isEqualTo(8 * round);
            rank.backend.monitoredBarrier(rank.op(OpType.MONITORED_BARRIER), true);
          }
        });
  }
}
