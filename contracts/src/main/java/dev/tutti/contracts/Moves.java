package dev.tutti.contracts;

import dev.tutti.DType;
import dev.tutti.contracts.Member.LayoutPair;

/** Static methods that check, with tensors of many kinds, an operation that moves elements. */
final class Moves {
  private Moves() {}

  /** A check of the operation with inputs and outputs of the given layouts, type and shape. */
  @FunctionalInterface
  interface Check {
    void run(Member member, Layout in, Layout out, DType dtype, long... shape);
  }

  /** Checks every type that the backend moves. */
  static void everyType(Member member, Check check) {
    for (DType dtype : member.movable()) {
      check.run(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, dtype, 7);
    }
  }

  /** Checks tensors of every size and layout, but no scalars. */
  static void anySizeAndLayout(Member member, Check check) {
    for (long numel : member.world().partSizes()) {
      check.run(member, Layout.CONTIGUOUS, Layout.CONTIGUOUS, DType.INT32, numel);
    }
    for (LayoutPair pair : member.layoutPairs()) {
      check.run(member, pair.input(), pair.output(), DType.FLOAT32, 3, 5);
    }
  }
}
