package dev.tutti.gloo.hier;

import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.Scratch;
import dev.tutti.gloo.algorithm.SocketAlgorithms;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.gloo.transport.Members;
import dev.tutti.gloo.transport.Transport;
import org.jspecify.annotations.Nullable;

/**
 * The algorithms between hosts, each among one rank of every host, numbered by host. Each is
 * created when first needed.
 */
final class InterHostAlgorithms {
  private final HostGroups groups;
  private final Transport transport;
  private final AlgorithmTable table;
  private final Scratch scratch = new Scratch();
  private final int host;
  private final int place;
  private final @Nullable SocketAlgorithms[] byRoot;
  private @Nullable SocketAlgorithms column;

  InterHostAlgorithms(HostGroups groups, Transport transport, AlgorithmTable table) {
    this.groups = groups;
    this.transport = transport;
    this.table = table;
    host = groups.hostOf(transport.rank());
    place = groups.placeOf(transport.rank());
    byRoot = new @Nullable SocketAlgorithms[transport.size()];
  }

  /**
   * Returns the place on this host of the rank that represents the host when the given rank is the
   * root.
   */
  int placeOfBridge(int root) {
    return groups.hostOf(root) == host ? groups.placeOf(root) : 0;
  }

  /** Returns whether this rank represents its host when the given rank is the root. */
  boolean isBridge(int root) {
    return placeOfBridge(root) == place;
  }

  /**
   * Returns the algorithms among a root and the leaders of the other hosts.
   *
   * @param root a rank for which this one is the bridge, {@link #isBridge}
   */
  SocketAlgorithms with(int root) {
    int key = groups.placeOf(root) == 0 ? 0 : root;
    SocketAlgorithms found = byRoot[key];
    if (found == null) {
      found = among(groups.leadersWith(key));
      byRoot[key] = found;
    }
    return found;
  }

  /**
   * Returns the algorithms among the ranks at this rank's place on each host; every host must have
   * one.
   */
  SocketAlgorithms column() {
    SocketAlgorithms found = column;
    if (found == null) {
      found = among(groups.column(place));
      column = found;
    }
    return found;
  }

  private SocketAlgorithms among(int[] ranks) {
    return new SocketAlgorithms(new Members(transport, ranks), table, scratch);
  }
}
