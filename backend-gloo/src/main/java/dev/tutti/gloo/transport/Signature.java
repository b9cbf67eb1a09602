package dev.tutti.gloo.transport;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.PeerMismatchException;

/**
 * Encodes in one word the values that ranks must agree on in an operation. A rank that calls a
 * different operation, or uses different tensors, is thus detected at once.
 */
@SuppressWarnings("EnumOrdinal") // the word is read by ranks of the same version only
public final class Signature {
  private static final long BYTES_MASK = (1L << 40) - 1;

  private static final long NO_KIND = 31;

  /** Stands in place of a root where a digest of sizes is in place of a size. */
  private static final long UNEQUAL = 0x7f;

  private Signature() {}

  /**
   * Signs an operation that moves bytes.
   *
   * @param type the operation
   * @param dtype the element type
   * @param root the root, or 0
   * @param bytes the size of the tensor or part in bytes, or 0 if it may differ between ranks
   * @return a nonzero signature
   */
  public static long of(OpType type, DType dtype, int root, long bytes) {
    return of(type, root, bytes) | (dtype.ordinal() + 1L) << 52 | NO_KIND << 47;
  }

  /**
   * Signs an operation without tensors.
   *
   * @param type the operation
   * @return a nonzero signature
   */
  public static long of(OpType type) {
    return of(type, 0, 0);
  }

  /**
   * Signs a user message; the signature is the same at the sender and the receiver.
   *
   * @param dtype the element type
   * @param bytes the size of the tensor in bytes
   * @return a nonzero signature
   */
  public static long ofMessage(DType dtype, long bytes) {
    return of(OpType.SEND, dtype, 0, bytes);
  }

  /**
   * Returns whether a signature is that of a user message.
   *
   * @param signature a signature from {@code of}, {@link #ofMessage} or a peer
   */
  public static boolean isOfMessage(long signature) {
    return typeOf(signature) == OpType.SEND.ordinal();
  }

  private static int typeOf(long signature) {
    return (int) (signature >>> 58) - 1;
  }

  private static long of(OpType type, int root, long bytes) {
    return (type.ordinal() + 1L) << 58 | (root & 0x7fL) << 40 | (bytes & BYTES_MASK);
  }

  /**
   * Signs a reducing operation.
   *
   * @param type the operation
   * @param dtype the element type
   * @param kind the operator
   * @param root the root, or 0
   * @param bytes the size of the tensor or part in bytes, or 0 if it may differ between ranks
   * @return a nonzero signature
   */
  public static long of(OpType type, DType dtype, ReduceOp.Kind kind, int root, long bytes) {
    return of(type, root, bytes) | (dtype.ordinal() + 1L) << 52 | (long) kind.ordinal() << 47;
  }

  /**
   * Signs an operation on one part for each rank, whose sizes are the same on all ranks.
   *
   * @param ofEmpty the signature of the same operation on parts of 0 bytes and without a root
   * @param bytes the sizes of the parts in bytes
   * @return a nonzero signature, which for parts of equal size has that size
   */
  public static long ofParts(long ofEmpty, long[] bytes) {
    long digest = 1;
    boolean isEqual = true;
    for (long size : bytes) {
      digest = (digest ^ size) * 0x9e3779b97f4a7c15L;
      digest ^= digest >>> 32;
      isEqual &= size == bytes[0];
    }
    return ofEmpty | (isEqual ? bytes[0] & BYTES_MASK : UNEQUAL << 40 | (digest & BYTES_MASK));
  }

  /**
   * Signs an all-reduce.
   *
   * @param tensor the tensor to be reduced
   * @param kind the operator
   * @param algorithm the algorithm that the caller requested
   * @return a nonzero signature
   */
  public static long ofAllReduce(Tensor tensor, ReduceOp.Kind kind, RequestedAlgorithm algorithm) {
    // It has no root, so there is room.
    return of(OpType.ALL_REDUCE, tensor.dtype(), kind, algorithm.ordinal(), tensor.byteSize());
  }

  /**
   * Describes what was signed.
   *
   * @param signature a signature from {@code of}
   */
  public static String describe(long signature) {
    int place = typeOf(signature);
    if (place < 0 || place >= OpType.values().length) {
      return "an unknown operation";
    }
    OpType type = OpType.values()[place];
    StringBuilder text = new StringBuilder(type.label());
    int dtype = (int) (signature >>> 52 & 0x3f) - 1;
    int kind = (int) (signature >>> 47 & 0x1f);
    if (kind < ReduceOp.Kind.values().length && dtype >= 0) {
      text.append(' ').append(ReduceOp.Kind.values()[kind]);
    }
    int number = (int) (signature >>> 40 & 0x7f);
    if (number == UNEQUAL && !hasRoot(type)) {
      return text.append(tensor(signature & ~BYTES_MASK, " in parts of unequal size")).toString();
    }
    text.append(tensor(signature));
    if (hasRoot(type)) {
      text.append(" with root ").append(number);
    } else if (number > 0 && number < RequestedAlgorithm.values().length) {
      text.append(" by ").append(RequestedAlgorithm.values()[number].label());
    }
    return text.toString();
  }

  private static String tensor(long signature) {
    return tensor(signature, " of " + (signature & BYTES_MASK) + " bytes");
  }

  private static String tensor(long signature, String size) {
    int dtype = (int) (signature >>> 52 & 0x3f) - 1;
    long bytes = signature & BYTES_MASK;
    if (dtype < 0 || dtype >= DType.values().length) {
      return size;
    }
    DType known = DType.values()[dtype];
    String numel = bytes == 0 ? "" : "[" + bytes / known.byteSize() + "]";
    return " " + known.label() + numel + size;
  }

  private static boolean hasRoot(OpType type) {
    return switch (type) {
      case BROADCAST, REDUCE, GATHER, SCATTER -> true;
      default -> false;
    };
  }

  /**
   * Creates the exception that a rank throws when it sees another one in a different operation, or
   * with different tensors.
   *
   * @param rank this rank
   * @param own the signature of this rank
   * @param peer the other rank
   * @param theirs the signature of the other rank
   */
  public static PeerMismatchException mismatch(int rank, long own, int peer, long theirs) {
    return new PeerMismatchException(
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

  /**
   * Creates the exception that both ends of a message throw if it was sent as something other than
   * it is received as.
   *
   * @param sender the rank that sends
   * @param sent the sender's signature
   * @param receiver the rank that receives
   * @param received the receiver's signature
   */
  public static PeerMismatchException messageMismatch(
      int sender, long sent, int receiver, long received) {
    return new PeerMismatchException(
        "rank "
            + sender
            + " sends"
            + tensor(sent)
            + " to rank "
            + receiver
            + ", which receives"
            + tensor(received)
            + "; both must pass tensors of the same size and type");
  }
}
