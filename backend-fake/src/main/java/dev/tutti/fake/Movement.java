package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Moves the data of one collective, once all ranks have provided their tensors. Each rank writes
 * only its own tensors; between two phases, all ranks wait for each other.
 *
 * <p>An all-reduce of n bytes by p ranks takes two phases. Each rank reads p parts of n/p bytes and
 * writes one, then copies p-1 of them. A reduce takes two phases, too. All other operations take
 * one phase and move each byte once.
 */
final class Movement {
  private Movement() {}

  /** Returns the number of phases of an operation. */
  static int phases(OpType type) {
    return switch (type) {
      case ALL_REDUCE, ALL_REDUCE_COALESCED, REDUCE -> 2;
      default -> 1;
    };
  }

  /** Performs one rank's part of one phase. */
  static void move(int phase, int rank, List<Contribution> calls) {
    Contribution own = calls.get(rank);
    switch (own.type()) {
      case BROADCAST -> {
        if (rank != own.root()) {
          own.outputs().get(0).copyFrom(calls.get(own.root()).inputs().get(0));
        }
      }
      case ALL_REDUCE, ALL_REDUCE_COALESCED -> {
        if (phase == 0) {
          reduceSlices(rank, calls);
        } else {
          collectSlices(rank, calls);
        }
      }
      case REDUCE -> {
        if (phase == 0) {
          reduceSlices(rank, calls);
        } else if (rank == own.root()) {
          collectSlices(rank, calls);
        }
      }
      case ALL_GATHER, GATHER -> {
        if (own.type() == OpType.ALL_GATHER || rank == own.root()) {
          for (int peer = 0; peer < calls.size(); peer++) {
            copy(calls.get(peer).inputs().get(0), own.outputs().get(peer));
          }
        }
      }
      case ALL_GATHER_INTO, ALL_GATHER_INTO_COALESCED -> {
        for (int i = 0; i < own.outputs().size(); i++) {
          Tensor output = own.outputs().get(i).flatten();
          for (int peer = 0; peer < calls.size(); peer++) {
            Tensor input = calls.get(peer).inputs().get(i);
            copy(input, output.narrow(0, peer * input.numel(), input.numel()));
          }
        }
      }
      case SCATTER -> copy(calls.get(own.root()).inputs().get(rank), own.outputs().get(0));
      case REDUCE_SCATTER -> {
        Tensor output = own.outputs().get(0);
        new RankReducer().reduce(ops(calls), inputs(calls, rank), 0, output, 0, output.numel());
      }
      case REDUCE_SCATTER_INTO, REDUCE_SCATTER_INTO_COALESCED -> {
        for (int i = 0; i < own.outputs().size(); i++) {
          Tensor output = own.outputs().get(i);
          long count = output.numel();
          new RankReducer().reduce(ops(calls), inputs(calls, i), rank * count, output, 0, count);
        }
      }
      case ALL_TO_ALL, ALL_TO_ALL_SINGLE -> {
        for (int peer = 0; peer < calls.size(); peer++) {
          copy(calls.get(peer).inputs().get(rank), own.outputs().get(peer));
        }
      }
      default -> {}
    }
  }

  /** Reduces this rank's slice of every tensor, at the place that only this rank touches. */
  private static void reduceSlices(int rank, List<Contribution> calls) {
    List<Tensor> tensors = calls.get(rank).outputs();
    RankReducer reducer = new RankReducer();
    for (int i = 0; i < tensors.size(); i++) {
      long from = sliceStart(tensors.get(i).numel(), rank, calls.size());
      long to = sliceStart(tensors.get(i).numel(), rank + 1, calls.size());
      if (from < to) {
        reducer.reduce(ops(calls), inputs(calls, i), from, tensors.get(i), from, to - from);
      }
    }
  }

  private static void collectSlices(int rank, List<Contribution> calls) {
    List<Tensor> tensors = calls.get(rank).outputs();
    for (int i = 0; i < tensors.size(); i++) {
      Tensor target = tensors.get(i).flatten();
      for (int peer = 0; peer < calls.size(); peer++) {
        long from = sliceStart(target.numel(), peer, calls.size());
        long length = sliceStart(target.numel(), peer + 1, calls.size()) - from;
        if (peer != rank && length > 0) {
          Tensor source = calls.get(peer).outputs().get(i).flatten();
          target.narrow(0, from, length).copyFrom(source.narrow(0, from, length));
        }
      }
    }
  }

  private static long sliceStart(long numel, int rank, int size) {
    long whole = numel / size;
    return whole * rank + Math.min(rank, numel % size);
  }

  private static void copy(Tensor source, Tensor target) {
    if (source.numel() > 0) {
      target.copyFrom(source);
    }
  }

  private static List<ReduceOp> ops(List<Contribution> calls) {
    List<ReduceOp> ops = new ArrayList<>(calls.size());
    for (Contribution call : calls) {
      ops.add(call.reduceOp());
    }
    return ops;
  }

  private static List<Tensor> inputs(List<Contribution> calls, int index) {
    List<Tensor> inputs = new ArrayList<>(calls.size());
    for (Contribution call : calls) {
      inputs.add(call.inputs().get(index));
    }
    return inputs;
  }

  /** Describes a pair of ranks whose parts have unequal sizes, or returns null if there is none. */
  static @Nullable String misfit(List<Contribution> calls) {
    int size = calls.size();
    Contribution first = calls.get(0);
    if (first.hasEqualParts()) {
      return null;
    }
    for (int to = 0; to < size; to++) {
      for (int from = 0; from < size; from++) {
        boolean meets =
            switch (first.type()) {
              case GATHER -> to == first.root();
              case SCATTER -> from == first.root();
              default -> true;
            };
        if (!meets) {
          continue;
        }
        boolean gathers = first.type() == OpType.ALL_GATHER || first.type() == OpType.GATHER;
        Tensor given = calls.get(from).inputs().get(gathers ? 0 : to);
        Tensor taken = calls.get(to).outputs().get(first.type() == OpType.SCATTER ? 0 : from);
        if (given.numel() != taken.numel()) {
          return "rank %s expects %s from rank %s, which gives %s"
              .formatted(to, taken.describe(), from, given.describe());
        }
      }
    }
    return null;
  }
}
