package dev.tutti.fake;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Staging;
import java.util.List;

/** Fills outputs as if all ranks had the data of this rank. */
final class UniformRanks extends FakeCopies {
  private final int size;

  UniformRanks(int size) {
    this.size = size;
  }

  @Override
  void reduce(Tensor tensor, ReduceOp op) {
    if (!isHost(tensor)) {
      return;
    }
    switch (op.kind()) {
      case SUM -> multiply(tensor, size);
      case PREMUL_SUM -> multiply(tensor, op.factor() * size);
      case PRODUCT -> power(tensor);
      case BXOR -> {
        if (size % 2 == 0) {
          tensor.segment().asSlice(0, tensor.byteSize()).fill((byte) 0);
        }
      }
      case AVG, MIN, MAX, BAND, BOR -> {}
    }
  }

  private static void multiply(Tensor tensor, double factor) {
    DType dtype = tensor.dtype();
    if (dtype.isFloatingPoint() || dtype.isComplex()) {
      HostReducer.scale(dtype, tensor.segment(), 0, tensor.numel(), factor);
    } else if (dtype != DType.BOOL) {
      for (long i = 0; i < tensor.numel(); i++) {
        tensor.setLong(i, tensor.getLong(i) * (long) factor);
      }
    }
  }

  private void power(Tensor tensor) {
    DType dtype = tensor.dtype();
    for (long i = 0; i < tensor.numel(); i++) {
      if (dtype.isFloatingPoint()) {
        tensor.setDouble(i, Math.pow(tensor.getDouble(i), size));
      } else {
        tensor.setLong(i, power(tensor.getLong(i), size));
      }
    }
  }

  /** Computes a power by repeated squaring; overflow wraps around as in repeated products. */
  private static long power(long base, int exponent) {
    long result = 1;
    long square = base;
    for (int rest = exponent; rest > 0; rest >>= 1) {
      if ((rest & 1) == 1) {
        result *= square;
      }
      square *= square;
    }
    return result;
  }

  @Override
  Tensor sparseSum(Tensor tensor) {
    Tensor sum = super.sparseSum(tensor);
    if (isHost(sum)) {
      multiply(sum.values(), size);
    }
    return sum;
  }

  /** Fills the outputs as if every rank sent this one what this one sends to itself. */
  @Override
  void exchange(List<Tensor> outputs, List<Tensor> inputs, int rank) {
    for (Tensor output : outputs) {
      tile(inputs.get(rank), output);
    }
  }

  @Override
  void exchangeSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, int rank) {
    exchange(Staging.splitRows(output, outputSplits), Staging.splitRows(input, inputSplits), rank);
  }
}
