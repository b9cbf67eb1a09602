package dev.tutti.gloo.algorithm;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;

/**
 * Puts into one word what the ranks must agree on in an operation, so that a rank that calls
 * another one, or with other tensors, is noticed at once.
 */
@SuppressWarnings("EnumOrdinal") // the word is read by ranks of the same version only
public final class Signature {
  private static final long BYTES_MASK = (1L << 40) - 1;

  private static final long NO_KIND = 31;

  private Signature() {}

  /**
   * Signs an operation that moves bytes.
   *
   * @param type the operation
   * @param dtype the element type
   * @param root its root, or 0
   * @param bytes of the tensor or part, or 0 where ranks may differ
   * @return not 0
   */
  public static long of(OpType type, DType dtype, int root, long bytes) {
    return of(type, root, bytes) | (dtype.ordinal() + 1L) << 52 | NO_KIND << 47;
  }

  /**
   * Signs an operation without tensors.
   *
   * @param type the operation
   * @return not 0
   */
  public static long of(OpType type) {
    return of(type, 0, 0);
  }

  private static long of(OpType type, int root, long bytes) {
    return (type.ordinal() + 1L) << 58 | (root & 0x7fL) << 40 | (bytes & BYTES_MASK);
  }

  /**
   * Signs an operation that reduces.
   *
   * @param type the operation
   * @param dtype the element type
   * @param kind how to reduce
   * @param root its root, or 0
   * @param bytes of the tensor or part, or 0 where ranks may differ
   * @return not 0
   */
  public static long of(OpType type, DType dtype, ReduceOp.Kind kind, int root, long bytes) {
    return of(type, root, bytes) | (dtype.ordinal() + 1L) << 52 | (long) kind.ordinal() << 47;
  }

  /**
   * Says what was signed.
   *
   * @param signature from {@code of}
   */
  public static String describe(long signature) {
    int type = (int) (signature >>> 58) - 1;
    if (type < 0 || type >= OpType.values().length) {
      return "an unknown operation";
    }
    StringBuilder text = new StringBuilder(OpType.values()[type].label());
    int dtype = (int) (signature >>> 52 & 0x3f) - 1;
    int kind = (int) (signature >>> 47 & 0x1f);
    if (kind < ReduceOp.Kind.values().length && dtype >= 0) {
      text.append(' ').append(ReduceOp.Kind.values()[kind]);
    }
    if (dtype >= 0 && dtype < DType.values().length) {
      text.append(' ').append(DType.values()[dtype].label());
    }
    text.append(" of ").append(signature & BYTES_MASK).append(" bytes");
    long root = signature >>> 40 & 0x7f;
    return (root == 0 ? text : text.append(" with root ").append(root)).toString();
  }

  /**
   * Makes what a rank throws that sees another one in another operation, or with other tensors.
   *
   * @param rank this rank
   * @param own what it called
   * @param peer the other rank
   * @param theirs what that one called
   */
  public static IllegalStateException mismatch(int rank, long own, int peer, long theirs) {
    return new IllegalStateException(
        "ranks disagree: rank "
            + rank
            + " called "
            + describe(own)
            + ", but rank "
            + peer
            + " called "
            + describe(theirs)
            + "; all ranks must call the same operations with tensors of the same size and type");
  }
}
