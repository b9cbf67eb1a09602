package dev.tutti.peer.libtorch;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;

/**
 * The input that every rank feeds into an operation, which every other rank can compute.
 *
 * <p>An operation's input on a rank is one flat sequence of components {@code 0, 1, 2, …}: the
 * elements of a list of tensors follow one another, and a complex element has two components. With
 * {@code h = (7·index + 13·rank + seed) mod 11}, which is 0…10, a component is
 *
 * <ul>
 *   <li>{@link Pattern#SMALL}: {@code h − 5}; for uint8 {@code h}; for bool {@code h mod 2};
 *   <li>{@link Pattern#POWER}: {@code 1 + h mod 2}, for products, which stay powers of two; for
 *       bool {@code h mod 2};
 *   <li>{@link Pattern#FRACTION}: {@code (((7919·index + 104729·rank + 31·seed) mod 2003) − 1001) /
 *       7.0} in double, then rounded to the type: sums depend on the order of accumulation.
 *       Floating-point types only.
 * </ul>
 */
public final class PeerData {
  private PeerData() {}

  /** The kinds of numbers to generate. */
  public enum Pattern {
    /** Small integers around zero. */
    SMALL,
    /** One and two. */
    POWER,
    /** Numbers that do not add up exactly. */
    FRACTION;

    /**
     * Chooses the pattern that a script line uses.
     *
     * @param reduceOp the reduce operation of the line, or an empty string
     * @param data the {@code data=} option of the line: {@code default} or {@code fraction}
     * @return FRACTION if asked for, else POWER for {@code product}, else SMALL
     * @throws IllegalArgumentException if {@code data} is neither
     */
    public static Pattern of(String reduceOp, String data) {
      return switch (data) {
        case "fraction" -> FRACTION;
        case "default" -> reduceOp.equals("product") ? POWER : SMALL;
        default ->
            throw new IllegalArgumentException("data: expected default or fraction, got " + data);
      };
    }
  }

  /**
   * Computes one component of the input.
   *
   * @param type element type
   * @param pattern which numbers
   * @param rank rank within the group of the operation
   * @param index position in the rank's flat sequence, from 0
   * @param seed the {@code seed=} option of the line, 0 by default
   * @return the number before rounding to the type
   */
  public static double value(PeerType type, Pattern pattern, int rank, long index, long seed) {
    if (pattern == Pattern.FRACTION) {
      if (!type.isFloating()) {
        throw new IllegalArgumentException(
            "data=fraction needs a floating-point dtype, got " + type.scriptName());
      }
      return (Math.floorMod(index * 7919 + rank * 104729L + seed * 31, 2003) - 1001) / 7.0;
    }
    int h = Math.floorMod(index * 7 + rank * 13L + seed, 11);
    if (type == PeerType.BOOL) {
      return h % 2;
    }
    if (pattern == Pattern.POWER) {
      return 1 + h % 2;
    }
    return type == PeerType.UINT8 ? h : h - 5;
  }

  /**
   * Encodes a run of a rank's input.
   *
   * @param type element type
   * @param pattern which numbers
   * @param rank rank within the group of the operation
   * @param from first element
   * @param count number of elements
   * @param seed the seed of the line
   * @return {@code count · type.byteSize()} little-endian bytes
   */
  public static byte[] input(
      PeerType type, Pattern pattern, int rank, long from, int count, long seed) {
    ByteBuffer out = ByteBuffer.allocate(count * type.byteSize()).order(ByteOrder.LITTLE_ENDIAN);
    int components = type.components();
    for (long i = from * components; i < (from + count) * components; i++) {
      type.put(out, value(type, pattern, rank, i, seed));
    }
    return out.array();
  }

  /**
   * Computes the checksum that a peer prints.
   *
   * @param bytes result bytes
   * @return CRC-32 (as in {@code java.util.zip}) in eight lower-case hexadecimal digits
   */
  public static String crc(byte[] bytes) {
    CRC32 crc = new CRC32();
    crc.update(bytes);
    return String.format("%08x", crc.getValue());
  }

  /**
   * Reads the leading numbers of a result.
   *
   * @param type element type
   * @param bytes little-endian result
   * @param limit at most this many components
   * @return their texts as {@link PeerType#take} gives them
   */
  public static List<String> head(PeerType type, byte[] bytes, int limit) {
    ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    List<String> texts = new ArrayList<>();
    while (texts.size() < limit && in.hasRemaining()) {
      texts.add(type.take(in));
    }
    return texts;
  }
}
