package dev.tutti.gloo.transport.connect;

/**
 * Says which ranks of Tutti connect when they meet. The others do when they first have something to
 * say to each other, so that connections do not grow with the square of the ranks.
 */
public final class Neighbors {
  /*
   * Rings, trees, doubling and dissemination go over distances that are powers of two, around the end.
   * Whoever dies is missed by that many ranks, which tell the others.
   */
  private static final int FEW = 8;

  private Neighbors() {}

  /**
   * Tells whether two ranks connect at once: all do in a small group, else those whose distance is
   * a power of two.
   *
   * @param size number of ranks
   */
  public static boolean areNear(int rank, int peer, int size) {
    int distance = Math.floorMod(peer - rank, size);
    return size <= FEW || isPower(distance) || isPower(size - distance);
  }

  private static boolean isPower(int number) {
    return Integer.bitCount(number) == 1;
  }
}
