package dev.tutti.fake;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.SparseSum;
import java.util.List;

/** Fills the outputs of a fake rank from its own inputs, without other ranks. */
class FakeCopies {
  /** Gives a tensor the content that reducing it over all ranks would. */
  void reduce(Tensor tensor, ReduceOp op) {}

  /** Sums a sparse tensor over all ranks. */
  Tensor sparseSum(Tensor tensor) {
    return isHost(tensor) ? SparseSum.of(List.of(tensor)) : tensor;
  }

  /** Fills the outputs that come from the ranks, one from each. */
  void exchange(List<Tensor> outputs, List<Tensor> inputs, int rank) {
    for (int peer = 0; peer < outputs.size(); peer++) {
      copyPrefix(inputs.get(peer), outputs.get(peer));
    }
  }

  /** Fills a whole tensor with parts from the ranks. */
  void exchangeSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, int rank) {
    copyPrefix(input, output);
  }

  static boolean isHost(Tensor tensor) {
    return tensor.device().isCpu();
  }

  /** Copies as many elements as fit, and zeroes the rest. */
  static void copyPrefix(Tensor source, Tensor target) {
    if (!isHost(source) || !isHost(target)) {
      return;
    }
    long bytes = Math.min(source.byteSize(), target.byteSize());
    target.segment().asSlice(0, bytes).copyFrom(source.segment().asSlice(0, bytes));
    target.segment().asSlice(bytes, target.byteSize() - bytes).fill((byte) 0);
  }

  /** Copies the elements repeatedly until the target is full. */
  static void tile(Tensor source, Tensor target) {
    if (!isHost(source) || !isHost(target)) {
      return;
    }
    long unit = source.byteSize();
    if (unit == 0) {
      target.segment().asSlice(0, target.byteSize()).fill((byte) 0);
      return;
    }
    for (long at = 0; at < target.byteSize(); at += unit) {
      long bytes = Math.min(unit, target.byteSize() - at);
      target.segment().asSlice(at, bytes).copyFrom(source.segment().asSlice(0, bytes));
    }
  }
}
