package dev.tutti.gloo.transport;

import java.util.stream.IntStream;

/** Connects some of the ranks of a transport, including this one. */
public final class Members extends Endpoint {
  private final Transport transport;
  private final int[] ranks;
  private final int own;

  /**
   * Creates an endpoint that numbers ranks by their position in a list.
   *
   * @param transport connects the ranks
   * @param ranks distinct ranks of the transport
   * @throws IllegalArgumentException if this rank is not among them
   */
  public Members(Transport transport, int[] ranks) {
    this.transport = transport;
    this.ranks = ranks.clone();
    own =
        IntStream.range(0, ranks.length)
            .filter(i -> ranks[i] == transport.rank())
            .findFirst()
            .orElseThrow(
                () -> new IllegalArgumentException(transport.self() + " is not among the members"));
  }

  @Override
  protected Transport transport() {
    return transport;
  }

  @Override
  public int rank() {
    return own;
  }

  @Override
  public int size() {
    return ranks.length;
  }

  @Override
  public int rankInGroup(int number) {
    return ranks[number];
  }
}
