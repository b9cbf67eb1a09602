package dev.tutti.gloo.transport;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.PeerMismatchException;

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

  /**
   * Signs a message of users, alike where it is sent and where it is received.
   *
   * @param dtype the element type
   * @param bytes of the tensor
   * @return not 0
   */
  public static long ofMessage(DType dtype, long bytes) {
    return of(OpType.SEND, dtype, 0, bytes);
  }

  /**
   * Tells whether a signature is of a message of users.
   *
   * @param signature from {@code of}, {@link #ofMessage} or a peer
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
   * Signs an all-reduce.
   *
   * @param tensor what is reduced
   * @param kind how to reduce
   * @param algorithm what the caller asked for
   * @return not 0
   */
  public static long ofAllReduce(Tensor tensor, ReduceOp.Kind kind, AllReduceAlgorithm algorithm) {
    // It has no root, so there is room.
    return of(OpType.ALL_REDUCE, tensor.dtype(), kind, algorithm.ordinal(), tensor.byteSize());
  }

  /**
   * Says what was signed.
   *
   * @param signature from {@code of}
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
    text.append(tensor(signature));
    int number = (int) (signature >>> 40 & 0x7f);
    if (hasRoot(type)) {
      text.append(" with root ").append(number);
    } else if (number > 0 && number < AllReduceAlgorithm.values().length) {
      text.append(" by ").append(AllReduceAlgorithm.values()[number].label());
    }
    return text.toString();
  }

  private static String tensor(long signature) {
    int dtype = (int) (signature >>> 52 & 0x3f) - 1;
    long bytes = signature & BYTES_MASK;
    String size = " of " + bytes + " bytes";
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
   * Makes what a rank throws that sees another one in another operation, or with other tensors.
   *
   * @param rank this rank
   * @param own what it called
   * @param peer the other rank
   * @param theirs what that one called
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
   * Makes what both ends of a message throw that was sent as something else than it is received as.
   *
   * @param sender the rank that sends
   * @param sent what it signed
   * @param receiver the rank that receives
   * @param received what that one signed
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
            + "; both must name tensors of the same size and type");
  }
}
