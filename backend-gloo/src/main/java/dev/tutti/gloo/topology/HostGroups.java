package dev.tutti.gloo.topology;

import java.util.Arrays;

/**
 * The grouping of ranks into hosts whose ranks share memory. Hosts are numbered in the order of
 * their lowest ranks, which lead them, and the ranks of a host in rank order.
 */
public final class HostGroups {
  private final int[][] ranks;
  private final int[] hosts;
  private final int[] places;

  private HostGroups(int[] leaders) {
    int size = leaders.length;
    hosts = new int[size];
    places = new int[size];
    int[] counts = new int[size];
    int count = 0;
    for (int rank = 0; rank < size; rank++) {
      // A leader is the lowest rank of its host, so it comes first.
      hosts[rank] = leaders[rank] == rank ? count++ : hosts[leaders[rank]];
      places[rank] = counts[hosts[rank]]++;
    }
    ranks = new int[count][];
    for (int host = 0; host < count; host++) {
      ranks[host] = new int[counts[host]];
    }
    for (int rank = 0; rank < size; rank++) {
      ranks[hosts[rank]][places[rank]] = rank;
    }
  }

  /**
   * Groups ranks.
   *
   * @param leaders for each rank, the lowest rank with which it shares memory, possibly itself
   * @throws IllegalArgumentException if a leader is not one of the ranks up to the rank that it
   *     leads, or does not lead itself
   */
  public static HostGroups of(int... leaders) {
    for (int rank = 0; rank < leaders.length; rank++) {
      int leader = leaders[rank];
      if (leader < 0 || leader > rank || leaders[leader] != leader) {
        throw new IllegalArgumentException(
            "rank " + rank + " cannot follow rank " + leader + " in " + Arrays.toString(leaders));
      }
    }
    return new HostGroups(leaders);
  }

  /** Returns the total number of ranks. */
  public int size() {
    return hosts.length;
  }

  /** Returns the number of hosts. */
  public int hosts() {
    return ranks.length;
  }

  /** Returns whether no rank shares memory with another one. */
  public boolean areAllAlone() {
    return ranks.length == hosts.length;
  }

  /** Returns whether all hosts have the same number of ranks. */
  public boolean areEven() {
    return Arrays.stream(ranks).allMatch(each -> each.length == ranks[0].length);
  }

  /** Returns the host of a rank. */
  public int hostOf(int rank) {
    return hosts[rank];
  }

  /** Returns the place of a rank among the ranks of its host. */
  public int placeOf(int rank) {
    return places[rank];
  }

  /** Returns the ranks of a host. */
  public int[] ranksOf(int host) {
    return ranks[host].clone();
  }

  /** Returns the number of ranks of a host. */
  public int countOf(int host) {
    return ranks[host].length;
  }

  /**
   * Returns one rank of each host, in host order: the ranks at one place, which must exist on every
   * host.
   */
  public int[] column(int place) {
    return Arrays.stream(ranks).mapToInt(each -> each[place]).toArray();
  }

  /**
   * Returns one rank of each host, in host order: the leaders, except that the given rank
   * represents its own host.
   */
  public int[] leadersWith(int rank) {
    int[] chosen = column(0);
    chosen[hosts[rank]] = rank;
    return chosen;
  }

  /** Returns the ranks of each host, as in {@code [0, 1] [2, 3]}. */
  @Override
  public String toString() {
    return String.join(" ", Arrays.stream(ranks).map(Arrays::toString).toList());
  }
}
