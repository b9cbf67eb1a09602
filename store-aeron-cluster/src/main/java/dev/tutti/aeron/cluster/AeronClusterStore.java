package dev.tutti.aeron.cluster;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.cluster.session.ClusterOpener;
import dev.tutti.aeron.cluster.session.ClusterSession;
import dev.tutti.aeron.driver.JvmFlags;
import dev.tutti.aeron.session.RemoteStore;
import dev.tutti.aeron.wire.ConnectOptions;
import dev.tutti.spi.Time;
import java.time.Duration;

/**
 * A client of a store that is replicated among several members ({@link AeronClusterServer}), so
 * that it survives the loss of any of them.
 *
 * <p>Each call takes effect once, even if the leader is lost in the meantime: the others elect a
 * new one, and the call continues. A call takes a round trip to the leader and one among the
 * members. {@link #multiSet} and {@link #multiGet} are atomic. All stores of a process for the same
 * cluster share one session, which has its own media driver. The cluster considers a process lost
 * after three leases without a sign of life, and later calls of that process fail; a process that
 * ends is noticed no earlier.
 */
public final class AeronClusterStore extends RemoteStore {
  private final ClusterSession link;

  /**
   * Connects to a cluster; retries until the deadline, including the resolution of its hosts.
   *
   * @param members the host and port of each member, as in {@code a:29500,b:29500,c:29500}
   * @param options the deadline, the token, shared memory, the lease and spinning; the rest is not
   *     used
   * @throws IllegalArgumentException if the members cannot be read
   * @throws StoreConnectionException if no leader answers by the deadline; names the hosts that
   *     cannot be resolved
   * @throws StoreTokenException if this process and the members do not have the same token
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronClusterStore(String members, AeronStoreOptions options) {
    this(open(ClusterMembers.parse(members), options), options.timeout());
  }

  private AeronClusterStore(ClusterSession link, Duration timeout) {
    super(link, timeout, Time.SYSTEM);
    this.link = link;
  }

  private static ClusterSession open(ClusterMembers members, AeronStoreOptions options) {
    JvmFlags.require();
    ConnectOptions connect =
        new ConnectOptions(
            options.token(),
            false,
            true,
            options.directory(),
            options.driver(),
            options.lease(),
            options.spin());
    return ClusterOpener.SESSIONS.take(
        members.toString(),
        connect,
        options.timeout(),
        deadline -> new ClusterOpener(members, connect, options.timeout(), deadline).open());
  }

  /** Returns the number of the current leader, as far as is known to this process. */
  public int leader() {
    return link.leader();
  }

  @Override
  public AeronClusterStore duplicate() {
    retainLink();
    return new AeronClusterStore(link, timeout());
  }

  @Override
  public String toString() {
    return "AeronClusterStore[" + link.server() + "]";
  }
}
