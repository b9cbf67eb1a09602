package dev.tutti.spi;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

/**
 * Thrown by a backend, for its group, when an operation runs out of time because of peers that the
 * backend can name.
 */
public final class PeerLateException extends TimeoutException {
  private static final long serialVersionUID = 1L;

  private final int[] peers;

  /**
   * Creates an exception.
   *
   * @param late the late ranks, at least one; the first is the one to blame
   * @param what what they did not do, in words that follow their numbers
   * @throws IllegalArgumentException if no rank is late
   */
  public PeerLateException(List<Integer> late, String what) {
    super(ranks(late) + " " + what);
    if (late.isEmpty()) {
      throw new IllegalArgumentException("no rank is late, but ranks " + what);
    }
    this.peers = late.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Formats ranks as messages name them: {@code rank 3}, or {@code ranks 1, 2}.
   *
   * @param ranks the ranks, at least one
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
