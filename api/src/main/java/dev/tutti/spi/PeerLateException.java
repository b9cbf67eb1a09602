package dev.tutti.spi;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/**
 * Reports, from a backend to its group, that an operation ran out of time for want of peers that
 * the backend knows.
 */
public final class PeerLateException extends TimeoutException {
  private static final long serialVersionUID = 1L;

  private final int[] peers;

  /**
   * Creates an exception.
   *
   * @param late the ranks, at least one; the first is the one to blame
   * @param what they did not do, in words that follow their numbers
   */
  public PeerLateException(List<Integer> late, String what) {
    super(ranks(late) + " " + what);
    this.peers = late.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Writes ranks as messages name them: {@code rank 3}, or {@code ranks 1, 2}.
   *
   * @param ranks at least one
   */
  public static String ranks(List<Integer> ranks) {
    return ranks.stream()
        .map(String::valueOf)
        .collect(Collectors.joining(", ", ranks.size() == 1 ? "rank " : "ranks ", ""));
  }

  /** Returns the rank to blame. */
  public int peer() {
    return peers[0];
  }

  /** Returns the ranks that are late; the first is the one to blame. */
  public List<Integer> peers() {
    return Arrays.stream(peers).boxed().toList();
  }
}
