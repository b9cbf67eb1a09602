package dev.tutti.kernels;

import dev.tutti.ReduceOp;

/** Maps the operators to the numbers in protocol.cuh, which are those of c10d. */
final class OpCodes {
  private OpCodes() {}

  static int of(ReduceOp.Kind kind) {
    return switch (kind) {
      case SUM -> 0;
      case AVG -> 1;
      case PRODUCT -> 2;
      case MIN -> 3;
      case MAX -> 4;
      case BAND -> 5;
      case BOR -> 6;
      case BXOR -> 7;
      case PREMUL_SUM -> 8;
    };
  }
}
