package dev.tutti.gloo.transport.connect;

/**
 * Determines which Tutti ranks connect at the start. The others connect when they first exchange a
 * message, so that the number of connections does not grow with the square of the number of ranks.
 */
public final class Neighbors {
  /*
   * Rings, trees, doubling and dissemination use distances that are powers of two, modulo the
   * number of ranks. When a rank dies, that many ranks detect it, and notify the others.
   */
  private static final int FEW = 8;

  private Neighbors() {}

  /**
   * Returns whether two ranks connect at once: all do in a small group, otherwise those whose
   * distance is a power of two.
   *
   * @param size the number of ranks
   */
  public static boolean areNear(int rank, int peer, int size) {
    int distance = Math.floorMod(peer - rank, size);
    return size <= FEW || isPower(distance) || isPower(size - distance);
  }

  private static boolean isPower(int number) {
    return Integer.bitCount(number) == 1;
  }
}
