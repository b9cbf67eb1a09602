package dev.tutti.gloo.host;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;

/**
 * Puts into one word what the ranks must agree on in an operation, so that a rank that calls
 * another one, or with other tensors, is noticed at once.
 */
@SuppressWarnings("EnumOrdinal") // the word is read by ranks of the same version only
final class Signature {
  private static final long BYTES_MASK = (1L << 40) - 1;

  private Signature() {}

  static long of(OpType type, int root, long bytes) {
    return (long) type.ordinal() << 58 | (root & 0x7fL) << 40 | (bytes & BYTES_MASK);
  }

  static long of(OpType type, DType dtype, ReduceOp.Kind kind, int root, long bytes) {
    return of(type, root, bytes) | (dtype.ordinal() + 1L) << 52 | (long) kind.ordinal() << 47;
  }

  static String describe(long signature) {
    OpType type = OpType.values()[(int) (signature >>> 58)];
    StringBuilder text = new StringBuilder(type.label());
    int dtype = (int) (signature >>> 52 & 0x3f) - 1;
    if (dtype >= 0) {
      text.append(' ').append(ReduceOp.Kind.values()[(int) (signature >>> 47 & 0x1f)]);
      text.append(' ').append(DType.values()[dtype].label());
    }
    return text.append(" of ").append(signature & BYTES_MASK).append(" bytes").toString();
  }
}
